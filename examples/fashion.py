"""Private classification of Fashion-MNIST images (``make demo``).

The model's owner trains and compiles a LeNet, in a process of its own, and hands its weights to party 1; this process
owns the images and receives the scores; two parties and a dealer, or with ``--protocol rep3`` three parties, run the
network. No process sees both images and weights.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from fashion_data import fashion_mnist

import privet
from privet.progress import progress
from privet.protocols import PROTOCOLS, choose
from privet.report import size

HERE = Path(__file__).parent


def main() -> None:
    """Run the demo and print what it cost and what everybody learned."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for model, logs and report")
    parser.add_argument("--images", type=int, default=256, help="test images to classify")
    parser.add_argument("--batch", type=int, default=64, help="images of one run")
    parser.add_argument("--model", choices=["lenet", "mlp"], default="lenet", help="network to train and run")
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="fss")
    parser.add_argument("--security", help="semi-honest or malicious; by default the most that the protocol can")
    options = parser.parse_args()
    try:
        protocol, security = choose(options.protocol, options.security)
    except ValueError as error:
        parser.error(str(error))
    out: Path = options.out
    folder = out / options.model
    out.mkdir(parents=True, exist_ok=True)

    print("1. the model's owner trains and compiles (a process of its own)", flush=True)
    owner = [str(HERE / "fashion_model.py"), "--model", options.model, "--out", str(folder)]
    owner += ["--images", str(options.images), "--batch", str(options.batch)]
    subprocess.run([sys.executable, *owner, "--protocol", protocol.name, "--security", security], check=True)

    # The images' owner reads the public part only: plan and interface.
    private = privet.load(folder, with_weights=False)
    images, labels = (t[: options.images] for t in fashion_mnist("test"))

    print("\n2. what a run will cost")
    print(private.estimate(network="lan"))

    who = f"{protocol.parties} parties" + (" and a dealer" if protocol.dealer else "")
    print(f"\n3. {options.images} images through {who} ({protocol.name}, {security}) over mutual TLS", flush=True)
    weights = folder / "model" / "weights.safetensors"
    with privet.local(private, weights=weights) as session:
        started = time.monotonic()
        session.prepare(options.images)
        if protocol.dealer:
            print(f"keys dealt and stored in {time.monotonic() - started:.1f} s", flush=True)
        scores = session.run(images, progress=progress("private inference", "images"))
        report = session.report
    assert report is not None

    print("\n4. against plaintext (public test images, so the model's owner could run them too)")
    plain = json.loads((folder / "plaintext.json").read_text())
    expected = torch.tensor(plain["scores"])
    accuracy = {
        "samples": len(images),
        "plaintext": share(expected.argmax(1) == labels),
        "private": share(scores.argmax(1) == labels),
        "agreement": share(scores.argmax(1) == expected.argmax(1)),
        "max_abs_err": (scores - expected).abs().max().item(),
    }
    print(f"plaintext accuracy  {accuracy['plaintext']:.2%}")
    print(f"private accuracy    {accuracy['private']:.2%}")
    print(f"agreement           {accuracy['agreement']:.2%}")
    print(f"largest difference  {accuracy['max_abs_err']:.2g}")
    totals = report.totals
    print(f"online              {totals['online_s']:.3f} s ({totals['online_s'] / len(images) * 1e3:.2f} ms an image)")
    print(f"sent by a party     {size(totals['bytes_sent'])} in {totals['rounds']} rounds")
    if report.verification is not None:
        print(f"of it verification  {size(report.verification['bytes_sent'])}, {report.verification['seconds']:.3f} s")
    if protocol.dealer:
        print(f"offline             {totals['offline_s']:.3f} s")
        print(f"keys of a party     {size(totals['key_bytes'])}")

    print("\n5. what each process learned")
    for place, what in report.learned().items():
        print(f"{place:12} {'; '.join(what) or 'sizes and timing only'}")

    page = report.with_accuracy(**accuracy).save_html(out / "report.html")
    print(f"\nreport: {page}")


def share(hits: torch.Tensor) -> float:
    """The share of true elements."""
    return hits.float().mean().item()


if __name__ == "__main__":
    main()
