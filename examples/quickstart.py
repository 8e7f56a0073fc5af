"""Private inference between processes on this machine: ``quickstart.py --protocol rep3 --security malicious``."""

import argparse

import torch

import privet
from privet.models import LeNet

model, images = LeNet(), torch.rand(8, 1, 28, 28)  # any trained nn.Module

parser = argparse.ArgumentParser()
parser.add_argument("--protocol", default="fss")
parser.add_argument("--security")

private = privet.compile(model, images, **vars(parser.parse_args()))
print(private.check() or "every operation of the model can run privately")
print(private.estimate(network="lan"))

with privet.local(private) as session:
    scores = session.run(images)
    print(session.report)

print("largest difference to PyTorch:", (scores - model.eval()(images)).abs().max().item())
