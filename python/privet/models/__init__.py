"""Plaintext definitions of the networks used in examples, tests and benchmarks.

Each docstring states the exact layers, input, classes and parameters, since published timings for "LeNet" or "AlexNet"
differ by an order of magnitude with the variant meant. Weights are PyTorch's defaults: random, without a seed.

``falcon`` is the evaluation set of Falcon, ``spin`` that of Spin where it differs, ``orca`` what Orca trains,
``residual`` ResNet-20 for CIFAR-10, ``vision`` networks of torchvision, and ``transformers`` BERT, GPT-2 and ViT.
``docs/models.md`` lists them all.
"""

from .falcon import (
    LeNet,
    alexnet_cifar,
    alexnet_tiny,
    mlp,
    network_a,
    network_b,
    network_c,
    vgg16_cifar,
    vgg16_tiny,
)
from .orca import cnn2, cnn3
from .residual import BasicBlock, ResNet20
from .spin import spin_alexnet, spin_lenet, spin_simple, spin_vgg16m
from .transformers import Vit, bert_base, bert_small, gpt2, gpt2_small, vit_b16, vit_small
from .vision import resnet18, resnet50, squeezenet, vgg16

__all__ = [
    "BasicBlock",
    "LeNet",
    "ResNet20",
    "Vit",
    "alexnet_cifar",
    "alexnet_tiny",
    "bert_base",
    "bert_small",
    "cnn2",
    "cnn3",
    "gpt2",
    "gpt2_small",
    "mlp",
    "network_a",
    "network_b",
    "network_c",
    "resnet18",
    "resnet50",
    "spin_alexnet",
    "spin_lenet",
    "spin_simple",
    "spin_vgg16m",
    "squeezenet",
    "vgg16",
    "vgg16_cifar",
    "vgg16_tiny",
    "vit_b16",
    "vit_small",
]
