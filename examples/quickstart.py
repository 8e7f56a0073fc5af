"""Private inference: dealer and two parties run as separate processes on this machine."""

import torch

import privet
from privet.models import LeNet

model = LeNet()  # any trained nn.Module
images = torch.rand(8, 1, 28, 28)

private = privet.compile(model, images)
print(private.check() or "every operation of the model can run privately")
print(private.estimate(network="lan"))

with privet.local(private) as session:
    scores = session.run(images)
    print(session.report)

print("largest difference to PyTorch:", (scores - model.eval()(images)).abs().max().item())
