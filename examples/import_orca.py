"""Makes a scheme of a policy that Orca's authors released, or of one that their learner has written.

git clone https://github.com/Soheil-ab/Orca
python examples/import_orca.py Orca/models/model.ckpt-1283529 authors.orca
astraea run three-flows --cc authors.orca,orca,cubic

A checkpoint of TensorFlow 1 is two files: tensors one after the other, and a sorted table that says where each of them
is. Both are read here, without TensorFlow. Batch normalisation becomes part of the weights, and each leaky unit two
rectified ones, so that actions are the same within 1e-5.

Reports of the authors' sender are 20 to 40 ms apart, whatever their paper says, since sender and policy look for each
other's messages every 10 ms. So 30 ms is what `--period` has without being told.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from astraea._native import OrcaPolicy

MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")
"""How a table ends."""

FLOAT = 1
"""TensorFlow's number for 32-bit floats."""

EPSILON = 1e-3
"""What TensorFlow's batch normalisation adds to a variance."""

SLOPE = 0.2
"""Of TensorFlow's leaky units below zero."""

Array = NDArray[np.float64]
Layer = tuple[Array, Array]


class CheckpointError(Exception):
    """What a file should have been, in one line."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and where the next begins."""
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


def entries(table: bytes, handle: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a block of a sorted table; `handle` says where it is.

    Keys leave out what they share with the one before.
    """
    start, at = varint(handle, 0)
    size, _ = varint(handle, at)
    if table[start + size] != 0:
        raise CheckpointError("is compressed")
    block = table[start : start + size]
    restarts = int.from_bytes(block[-4:], "little")
    at, key = 0, b""
    while at < len(block) - 4 * (restarts + 1):
        shared, at = varint(block, at)
        rest, at = varint(block, at)
        length, at = varint(block, at)
        key = key[:shared] + block[at : at + rest]
        at += rest + length
        yield key, block[at - length : at]


def fields(message: bytes) -> dict[int, list[int | bytes]]:
    """The fields of a protocol buffer by number."""
    found: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        value: int | bytes
        match tag & 7:
            case 0:
                value, at = varint(message, at)
            case 2:
                length, at = varint(message, at)
                value, at = message[at : at + length], at + length
            case 5:
                value, at = message[at : at + 4], at + 4
            case kind:
                raise CheckpointError(f"has a field of kind {kind}")
        found.setdefault(tag >> 3, []).append(value)
    return found


def number(message: dict[int, list[int | bytes]], field: int) -> int:
    """A number in a message, 0 where it is left out."""
    value = message.get(field, [0])[0]
    if not isinstance(value, int):
        raise CheckpointError(f"has bytes where field {field} is a number")
    return value


def tensors(checkpoint: Path) -> dict[str, Array]:
    """The floating-point tensors of a checkpoint, by name."""
    table = checkpoint.with_name(f"{checkpoint.name}.index").read_bytes()
    values = checkpoint.with_name(f"{checkpoint.name}.data-00000-of-00001").read_bytes()
    if table[-8:] != MAGIC:
        raise CheckpointError("is no index of a TensorFlow checkpoint")
    footer = table[-48:]
    _, at = varint(footer, 0)
    _, at = varint(footer, at)
    found = {}
    for _, handle in entries(table, footer[at:]):
        for name, entry in entries(table, handle):
            if not name:  # the first entry describes the checkpoint itself
                continue
            described = fields(entry)
            if number(described, 1) != FLOAT:
                continue
            shape = [number(fields(bytes(size)), 1) for size in _sizes(described)]
            start, length = number(described, 4), number(described, 5)
            numbers = np.frombuffer(values[start : start + length], "<f4")
            found[name.decode()] = numbers.reshape(shape).astype(np.float64)
    return found


def _sizes(described: dict[int, list[int | bytes]]) -> list[bytes]:
    """The messages about a tensor's dimensions."""
    return [bytes(size) for shape in described.get(2, []) for size in fields(bytes(shape)).get(2, [])]


def layers(found: dict[str, Array]) -> list[Layer]:
    """Weights (outputs, inputs) and biases of the actor, whose units are rectified."""
    hidden = [_normalised(found, "fc1", "batch_normalization"), _normalised(found, "fc2", "batch_normalization_1")]
    last = (found["actor/dense/kernel"].T, found["actor/dense/bias"])
    made: list[Layer] = []
    for weights, biases in [*hidden, last]:
        # leaky(x) = relu(x) - 0.2 relu(-x)
        inputs = np.hstack([weights, -SLOPE * weights]) if made else weights
        made.append((np.vstack([inputs, -inputs]), np.concatenate([biases, -biases])))
    made[-1] = (made[-1][0][:1], made[-1][1][:1])
    return made


def _normalised(found: dict[str, Array], dense: str, norm: str) -> Layer:
    """A layer with the batch normalisation behind it, as it is after training."""
    gain = 1.0 / np.sqrt(found[f"actor/{norm}/moving_variance"] + EPSILON)
    biases = (found[f"actor/{dense}/bias"] - found[f"actor/{norm}/moving_mean"]) * gain + found[f"actor/{norm}/beta"]
    return (found[f"actor/{dense}/kernel"] * gain).T, biases


def convert(checkpoint: Path, period: float) -> OrcaPolicy:
    """The policy in a checkpoint, for reports `period` s apart.

    Raises `CheckpointError` with one line for what is none.
    """
    try:
        with np.errstate(all="ignore"):  # what is no number is refused in one line
            made = [
                (weights.astype(np.float32), biases.astype(np.float32))
                for weights, biases in layers(tensors(checkpoint))
            ]
        return OrcaPolicy(made, period=period, metadata={"recipe": f"examples/import_orca.py {checkpoint.name}"})
    except OSError as error:
        raise CheckpointError(f"{error.filename}: {error.strerror}") from None
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint}.index: {error}") from None
    except KeyError as error:
        raise CheckpointError(f"{checkpoint}: no tensor {error}, expected a checkpoint of Orca's") from None
    except (ValueError, IndexError, OverflowError) as error:
        raise CheckpointError(f"{checkpoint}: {error}, expected a checkpoint of Orca's") from None


def main() -> None:
    """Read, convert and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="its path, with or without .index")
    parser.add_argument("file", help="where to write the policy, NAME.orca")
    parser.add_argument("--period", type=float, default=30.0, metavar="MS", help="time between reports (default 30)")
    options = parser.parse_args()
    try:
        if not options.file.endswith(".orca"):
            raise CheckpointError(f"{options.file}: expected NAME.orca")
        if not 1 <= options.period <= 1000:
            raise CheckpointError(f"--period: is {options.period:g}, expected 1 to 1000 (ms)")
        checkpoint = Path(str(options.checkpoint).removesuffix(".index"))
        convert(checkpoint, options.period / 1000).save(options.file)
    except (CheckpointError, ValueError) as error:
        print(f"import_orca.py: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    print(f"wrote {options.file}")


if __name__ == "__main__":
    main()
