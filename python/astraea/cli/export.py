"""`astraea export`: a policy for other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from astraea import models
from astraea.cli.output import Quiet, out
from astraea.errors import UserError
from astraea.files import write_whole


def export(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A shipped policy, or a file: .safetensors, .aurora, .mocc, .orca, .antelope, .hacc.",
            autocompletion=lambda: [*models.names(), *models.RIVALS],
        ),
    ],
    onnx: Annotated[Path, typer.Option("--onnx", metavar="FILE", help="Where the ONNX graph goes.")],
    quiet: Quiet = False,
) -> None:
    """Write a policy as an ONNX graph: states (n, inputs) in, actions (n) out. Needs the extra [b]export[/b].

    The graph's metadata say what the states are, and whatever else the policy file says.

    Example: [b]astraea export astraea --onnx astraea.onnx[/b]
    """
    from astraea import export as exporting

    file = Path(policy) if models.paper(policy) else models.path(policy)
    if policy not in models.RIVALS and onnx.resolve() == file.resolve():
        raise UserError(f"--onnx {onnx}: is the policy itself; expected another file")
    made = exporting.export(models.load_any(policy), file.stem)
    write_whole(onnx, made.content)
    if not quiet:
        out().print(
            f"{onnx}: {len(made.content)} bytes; largest difference from our own inference "
            f"{made.largest_difference:.1e} over {made.states} states",
            soft_wrap=True,
        )
