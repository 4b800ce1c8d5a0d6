"""A model of two nodes, for ONNX Runtime's lives and scenarios: y = x * x + x."""

from __future__ import annotations

from onnx import TensorProto
from onnx import helper


def _model() -> bytes:
    shape = ["n"]
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["x", "x"], ["squared"]),
            helper.make_node("Add", ["squared", "x"], ["y"]),
        ],
        "square",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    content: bytes = model.SerializeToString()
    return content


MODEL = _model()
