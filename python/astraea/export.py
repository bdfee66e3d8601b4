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

TREES = "ai.onnx.ml"
"""Where the operator for trees is from; its third version came with those."""

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

    That of a selector has `worth` (n, schemes) instead of an action. Its metadata are the policy's and
    `state_definition`, which says what the inputs are. Raises `UserError` without the extra, and if the graph does not
    give the policy's answers.
    """
    if importlib.util.find_spec("onnx") is None:
        raise UserError("exporting to ONNX needs onnx, of the extra export; in the checkout: make extra-export")
    import onnx
    from onnx.reference import ReferenceEvaluator

    graph = _trees(policy) if isinstance(policy, _native.SelectorPolicy) else _network(policy)
    model = _model(policy, graph, name)
    onnx.checker.check_model(model, full_check=True)
    tried = np.random.default_rng(1).normal(size=(states, policy.inputs)).astype(np.float32)
    with np.errstate(all="ignore"):  # what overflows shows in the difference, which is said in one line
        (answers,) = ReferenceEvaluator(model).run(None, {"states": tried})
    expected = policy.predict(tried) if isinstance(policy, _native.SelectorPolicy) else policy.forward(tried)
    difference = float(np.abs(np.asarray(answers) - expected).max())
    if not difference <= TOLERANCE:
        raise UserError(f"{name}: the graph's answers differ by {difference:.1e}; expected at most {TOLERANCE:.0e}")
    return Exported(model.SerializeToString(), difference, states)


def _trees(policy: _native.SelectorPolicy) -> _Graph:
    """All trees of all schemes in one node."""
    nodes: dict[str, list[Any]] = {
        key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    targets: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    models = policy.models()
    tree = 0
    for scheme, (_, features, thresholds, answers) in enumerate(models[name] for name in policy.candidates):
        for asked, limits, ends in zip(features, thresholds, answers, strict=True):
            questions = len(asked)
            for node in range(questions + len(ends)):
                leaf = node >= questions
                # What a tree does not ask has no limit; a graph has no infinite ones.
                limit = 0.0 if leaf else float(min(limits[node], np.finfo(np.float32).max))
                row = (tree, node, 0 if leaf else int(asked[node]), limit, "LEAF" if leaf else "BRANCH_LEQ")
                branches = (0, 0) if leaf else (2 * node + 1, 2 * node + 2)
                for column, value in zip(nodes.values(), (*row, *branches), strict=True):
                    column.append(value)
                if leaf:
                    entry = (tree, node, scheme, float(ends[node - questions]))
                    for column, value in zip(targets.values(), entry, strict=True):
                        column.append(value)
            tree += 1
    attributes = {f"nodes_{key}": column for key, column in nodes.items()}
    attributes |= {f"target_{key}": column for key, column in targets.items()}
    bases = [models[name][0] for name in policy.candidates]
    graph = _Graph(["n", len(models)])
    graph.node(
        "TreeEnsembleRegressor",
        ["states"],
        "worth",
        domain=TREES,
        n_targets=len(models),
        base_values=bases,
        **attributes,
    )
    return graph


def _network(policy: _native.Policy | _native.AuroraPolicy | _native.MoccPolicy | _native.OrcaPolicy) -> _Graph:
    graph = _Graph(["n"])
    layers = policy.weights()
    value = "states"
    if isinstance(policy, _native.MoccPolicy):
        value = _with_preference(graph, policy)
    for index, (weights, bias) in enumerate(layers):
        parts = [graph.constant(f"layer.{index}.weight", weights), graph.constant(f"layer.{index}.bias", bias)]
        value = graph.node("Gemm", [value, *parts], f"sum.{index}", transB=1)
        if index + 1 < len(layers):
            value = graph.activation(policy.activation, value, index, len(bias))
    if isinstance(policy, _native.AuroraPolicy | _native.MoccPolicy):
        limits = [
            graph.constant(name, np.array(sign * policy.action_limit, np.float32))
            for name, sign in (("least", -1), ("most", 1))
        ]
        value = graph.node("Clip", [value, *limits], "clipped")
    else:
        value = graph.node("Tanh", [value], "tanh")
    graph.node("Squeeze", [value, graph.constant("axis", np.array([1], dtype=np.int64))], "action")
    return graph


def _with_preference(graph: _Graph, policy: _native.MoccPolicy) -> str:
    """The intervals of the states, and what a layer of its own makes of the preference at their end."""
    weights, bias = policy.preference()
    sizes = graph.constant("sizes", np.array([policy.inputs - weights.shape[1], weights.shape[1]], dtype=np.int64))
    graph.node("Split", ["states", sizes], "intervals", "asked", axis=1)
    parts = [graph.constant("preference.weight", weights), graph.constant("preference.bias", bias)]
    summed = graph.node("Gemm", ["asked", *parts], "preference.sum", transB=1)
    units = graph.node("Tanh", [summed], "preference")
    return graph.node("Concat", ["intervals", units], "joined", axis=1)


def _model(policy: _native.Policy | Rival, graph: _Graph, name: str) -> onnx.ModelProto:
    from onnx import TensorProto, helper

    trees = isinstance(policy, _native.SelectorPolicy)
    made = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["n", policy.inputs])],
        [helper.make_tensor_value_info("worth" if trees else "action", TensorProto.FLOAT, graph.shape)],
        graph.constants,
    )
    model = helper.make_model(
        made,
        opset_imports=[helper.make_opsetid(*domain) for domain in [("", OPSET)] + [(TREES, 3)] * trees],
        ir_version=IR,
        producer_name="astraea",
        producer_version=__version__,
    )
    helper.set_model_props(model, policy.metadata | {"state_definition": policy.definition})
    return model


class _Graph:
    """Nodes and constants in the order in which they are added."""

    def __init__(self, shape: list[str | int]) -> None:
        self.shape = shape
        """Of what comes out."""
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
