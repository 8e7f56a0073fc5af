"""What a failed trace says to a user: where in the model, what happened, and what to do."""

from __future__ import annotations

import re
import traceback

from torch import nn

from ._source import last_user_frame

MOST = 300
"""Characters of torch's own message."""

BY_VALUES = (
    "The model decides by the values of a tensor, which nobody may see in a private run. Make the decision"
    " on shapes or settings, or compute both branches and combine them arithmetically."
)

REMEDIES = (
    (r"data-dependent|GuardOnDataDependent", BY_VALUES),
    (r"_ctc_loss", "Compute the loss in the clear, from the revealed result."),
    (r"DataDependentOutput", f"This operation gives a plain number or a shape by a tensor's values. {BY_VALUES}"),
    (r"failed to unpack the object .*FakeTensor", f"A shape is taken from a tensor's values. {BY_VALUES}"),
    (
        r"is not a known type|register a pytree",
        "Return tensors, or tuples, lists and dictionaries of tensors (of transformers, call the model with"
        " use_cache=False, or return .logits).",
    ),
    (r"fake tensor in the exported program", "Take x.detach() instead of x.data, and compute with torch alone."),
    (r"\.numpy\(\) is not supported", "Compute with torch instead of numpy: the trace sees torch's operations alone."),
    (r"quantized|PackedParams", "Give the model before it was quantised: privet chooses numbers for it by itself."),
    (
        r"set the storage of a tensor",
        "A layer that changes a tensor's storage cannot be traced: let it return new tensors"
        " (LocalResponseNorm instead of CrossMapLRN2d).",
    ),
)
"""What torch says, as regular expressions, and what to do; the first match wins."""

_HEADING = re.compile(r'^(The error above occurred|File "|\s*$)')


def explain(model: nn.Module, error: Exception) -> str:
    """What went wrong in a trace, where in the model, and what to do."""
    where = last_user_frame(str(error)) or last_user_frame("".join(traceback.format_tb(error.__traceback__)))
    text = f"torch.export could not trace {type(model).__name__}"
    text += f" at {where}: {said(error)}" if where else f": {said(error)}"
    whole = f"{type(error).__name__}: {error}"
    remedy = next((remedy for pattern, remedy in REMEDIES if re.search(pattern, whole)), None)
    return text if remedy is None else f"{text}\n{remedy}"


def said(error: Exception) -> str:
    """The first line of an error that is about the model."""
    lines = (str(error).strip() or type(error).__name__).splitlines()
    first = next((line for line in lines if not _HEADING.match(line)), lines[0]).strip()
    # torch's advice to its own users, and places in it, are of no use here
    first = re.split(r" See https?://| Please file an issue| \(unhinted", first)[0]
    return first[:MOST]
