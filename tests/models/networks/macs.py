"""Multiply-adds of a model."""
import numpy as np
from onnx import helper, shape_inference


def macs_of(m):
    """Multiply-adds of Conv, ConvTranspose, Gemm, MatMul, LSTM, GRU, by inferred static shapes (None if some are unknown)."""
    try:
        m = shape_inference.infer_shapes(m, data_prop=True)
    except TypeError:
        m = shape_inference.infer_shapes(m)
    sh = {t.name: list(t.dims) for t in m.graph.initializer}
    for v in list(m.graph.value_info) + list(m.graph.input) + list(m.graph.output):
        tt = v.type.tensor_type
        if tt.HasField("shape"):
            sh[v.name] = [d.dim_value if d.HasField("dim_value") else None for d in tt.shape.dim]
    tot, unknown = 0, 0
    P = lambda v: int(np.prod(v, dtype=np.int64))
    for n in m.graph.node:
        try:
            i = [sh.get(q) for q in n.input]
            o = sh.get(n.output[0])
            at = {q.name: helper.get_attribute_value(q) for q in n.attribute}
            if n.op_type == "Conv":
                tot += P(o) * P(i[1][1:])
            elif n.op_type == "ConvTranspose":
                tot += P(i[0]) * P(i[1][1:])
            elif n.op_type == "Gemm":
                tot += P(o) * (i[0][0] if at.get("transA") else i[0][1])
            elif n.op_type == "MatMul":
                tot += P(o) * i[0][-1]
            elif n.op_type in ("LSTM", "GRU"):
                s, b, I = i[0]
                dr, gh, _ = i[1]
                tot += s * b * dr * gh * (I + at["hidden_size"])
        except (TypeError, KeyError, IndexError):
            unknown += 1
    return tot, unknown
