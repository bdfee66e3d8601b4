"""A policy as an ONNX graph, for the runtimes of others. Needs the extra `export`."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from astraea import __version__, _native
from astraea.errors import UserError

if TYPE_CHECKING:
    import onnx

    from astraea.models import Rival

OPSET = 17
"""Version of the operators: of 2022, which every runtime in use knows."""

IR = 8
"""Version of the file format that came with them."""

TOLERANCE = 1e-5
"""Largest difference from our own inference: that of the order in which float32 numbers are added."""


@dataclass(frozen=True)
class Exported:
    """A checked graph."""

    content: bytes
    largest_difference: float
    """From our own inference, over `states` random states."""
    states: int


def export(policy: _native.Policy | Rival, name: str, states: int = 256) -> Exported:
    """The graph of a policy: `states` (n, inputs) in, `action` (n,) out, both float32.

    Its metadata are the policy's and `state_definition`, which says what the inputs are. Raises `UserError` without the
    extra, and if the graph does not give the policy's actions.
    """
    if importlib.util.find_spec("onnx") is None:
        raise UserError("exporting to ONNX needs onnx, of the extra export; in the checkout: make extra-export")
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = _model(policy, name)
    onnx.checker.check_model(model, full_check=True)
    tried = np.random.default_rng(1).normal(size=(states, policy.inputs)).astype(np.float32)
    with np.errstate(all="ignore"):  # what overflows shows in the difference, which is said in one line
        (actions,) = ReferenceEvaluator(model).run(None, {"states": tried})
    difference = float(np.abs(np.asarray(actions) - policy.forward(tried)).max())
    if not difference <= TOLERANCE:
        raise UserError(f"{name}: the graph's actions differ by {difference:.1e}; expected at most {TOLERANCE:.0e}")
    return Exported(model.SerializeToString(), difference, states)


def _model(policy: _native.Policy | Rival, name: str) -> onnx.ModelProto:
    from onnx import TensorProto, helper

    graph = _Graph()
    layers = policy.weights()
    value = "states"
    for index, (weights, bias) in enumerate(layers):
        parts = [graph.constant(f"layer.{index}.weight", weights), graph.constant(f"layer.{index}.bias", bias)]
        value = graph.node("Gemm", [value, *parts], f"sum.{index}", transB=1)
        if index + 1 < len(layers):
            value = graph.activation(policy.activation, value, index, len(bias))
    if isinstance(policy, _native.AuroraPolicy):
        limits = [
            graph.constant(name, np.array(sign * policy.action_limit, np.float32))
            for name, sign in (("least", -1), ("most", 1))
        ]
        value = graph.node("Clip", [value, *limits], "clipped")
    else:
        value = graph.node("Tanh", [value], "tanh")
    graph.node("Squeeze", [value, graph.constant("axis", np.array([1], dtype=np.int64))], "action")
    made = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["n", policy.inputs])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["n"])],
        graph.constants,
    )
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR,
        producer_name="astraea",
        producer_version=__version__,
    )
    helper.set_model_props(model, policy.metadata | {"state_definition": policy.definition})
    return model


class _Graph:
    """Nodes and constants in the order in which they are added."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def node(self, operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        """Adds a node and returns its first output."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, list(outputs), **attributes))
        return outputs[0]

    def activation(self, name: str, value: str, index: int, units: int) -> str:
        if name in ("relu", "tanh"):
            return self.node(name.capitalize(), [value], f"hidden.{index}")
        half = (units + 1) // 2
        sizes = self.constant(f"halves.{index}", np.array([half, units - half], dtype=np.int64))
        zero = self.constant(f"zero.{index}", np.zeros(1, dtype=np.float32))
        first, second = f"first.{index}", f"second.{index}"
        self.node("Split", [value, sizes], first, second, axis=1)
        parts = [self.node("Relu", [first], f"{first}.max"), self.node("Min", [second, zero], f"{second}.min")]
        return self.node("Concat", parts, f"hidden.{index}", axis=1)
