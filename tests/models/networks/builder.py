"""A small graph builder: named constants, nodes, the layers that the networks share."""
import collections
import json
import math
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

I64 = TensorProto.INT64


class G:
    """A small graph builder."""

    def __init__(g, name, o):
        g.mname, g.o, g.opset = name, o, o.opset
        g.nodes, g.inits, g.inputs, g.outputs = [], {}, [], []
        g.count, g.io = collections.Counter(), {"inputs": {}, "dims": {}}
        g.np = np.float16 if o.dtype == "float16" else np.float32
        g.ft = TensorProto.FLOAT16 if o.dtype == "float16" else TensorProto.FLOAT
        g.params = 0          # trainable parameters, counted as the frameworks do
        g.dyn = o.dynamic
        g.B = o.batch

    # ---- naming, constants, nodes
    def fresh(g, p):
        g.count[p] += 1
        return "%s_%d" % (p, g.count[p])

    def const(g, arr, hint="const", param=False):
        arr = np.asarray(arr)
        if arr.dtype in (np.float32, np.float64, np.float16):
            arr = arr.astype(g.np)
        if param:
            name = hint
            if name in g.inits:
                return name
        else:
            key = (hint, arr.dtype.str, arr.shape, arr.tobytes()) if arr.size <= 64 else None
            cache = g.__dict__.setdefault("cache", {})
            if key is not None and key in cache:
                return cache[key]
            name = g.fresh(hint)
            if key is not None:
                cache[key] = name
        g.inits[name] = numpy_helper.from_array(np.ascontiguousarray(arr).reshape(arr.shape), name)
        return name

    def f32(g, v, name):                        # stays float32 whatever --dtype says
        g.inits[name] = numpy_helper.from_array(np.array(v, np.float32), name)
        return name

    def i64(g, *v):
        return g.const(np.array(v, np.int64), "i64")

    def f(g, v):
        return g.const(np.array(v, g.np), "f")

    def op(g, op_type, ins, n=1, out=None, **attrs):
        outs = [out] if out else [g.fresh(op_type.lower() + "_out") for _ in range(n)]
        g.nodes.append(helper.make_node(op_type, list(ins), outs,
                                        name="/%s_%d" % (op_type, len(g.nodes)), **attrs))
        return outs[0] if n == 1 else outs

    def inp(g, name, shape, dtype=None, kind="normal", lo=0, hi=1, cast=None):
        """shape: ints or (symbol, static value).  Symbols are used only with --dynamic."""
        dims = []
        for d in shape:
            if isinstance(d, tuple):
                g.io["dims"][d[0]] = d[1]
                dims.append(d[0] if g.dyn else d[1])
            else:
                dims.append(d)
        g.inputs.append(helper.make_tensor_value_info(name, dtype or g.ft, dims))
        g.io["inputs"][name] = {"kind": kind, "lo": lo, "hi": hi}
        return name

    def out(g, value, name, shape, dtype=None):
        dims = [(d[0] if g.dyn else d[1]) if isinstance(d, tuple) else d for d in shape]
        g.op("Identity", [value], out=name)
        g.outputs.append(helper.make_tensor_value_info(name, dtype or g.ft, dims))

    # ---- shapes: a dim is an int (static) or the name of a 1-element int64 tensor (dynamic)
    def dim(g, x, axis, static):
        if not g.dyn:
            return static
        s = g.op("Shape", [x])
        d = g.op("Gather", [s, g.const(np.array(axis, np.int64), "ax")], axis=0)
        return g.op("Unsqueeze", [d, g.i64(0)])

    def shape_of(g, dims):
        if all(isinstance(d, int) for d in dims):
            return g.i64(*dims)
        return g.op("Concat", [g.i64(d) if isinstance(d, int) else d for d in dims], axis=0)

    def reshape(g, x, dims):
        return g.op("Reshape", [x, g.shape_of(dims)])

    def add_dims(g, a, b):
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return g.op("Add", [g.i64(a) if isinstance(a, int) else a, g.i64(b) if isinstance(b, int) else b])

    def dim_name(g, d):
        return g.i64(d) if isinstance(d, int) else d

    # ---- parameters
    def rng(g, name):
        return np.random.RandomState((zlib.crc32((g.mname.split("@")[0] + "/" + name).encode()) + g.o.seed) % 2**32)

    def randn(g, name, shape, std=1.0, mean=0.0):
        return (g.rng(name).standard_normal(tuple(shape)) * std + mean).astype(np.float32)

    def weight(g, name, shape, fan_in, g2, zero_sum_axes=None):
        w = g.randn(name, shape)
        if zero_sum_axes and fan_in >= 27:     # remove each filter's mean: keeps the output dependent on the input
            m = w.astype(np.float64).mean(axis=zero_sum_axes, keepdims=True)      # rounded, so that the order of summation cannot show
            w = (w - (np.rint(m * 2**20) / 2**20).astype(np.float32)).astype(np.float32)
        return (w * math.sqrt(g2 / fan_in)).astype(np.float32)

    def bn_stats(g, name, c, scale):
        return (g.randn(name + ".weight", (c,), .1 * scale, scale), g.randn(name + ".bias", (c,), .1),
                g.randn(name + ".running_mean", (c,), .1), np.square(g.randn(name + ".running_var", (c,), .1, 1.0)) + np.float32(.05))

    # ---- layers
    def act(g, x, a):
        if a is None:
            return x
        if a == "relu":
            return g.op("Relu", [x])
        if a == "relu6":
            return g.op("Clip", [x, g.f(0), g.f(6)])
        if a == "silu":
            return g.op("Mul", [x, g.op("Sigmoid", [x])])
        if a == "hswish":
            if g.opset >= 14:
                return g.op("HardSwish", [x])
            return g.op("Mul", [x, g.op("HardSigmoid", [x], alpha=1 / 6., beta=.5)])
        if a == "hsigmoid":
            return g.op("HardSigmoid", [x], alpha=1 / 6., beta=.5)
        if a == "sigmoid":
            return g.op("Sigmoid", [x])
        if a == "tanh":
            return g.op("Tanh", [x])
        if a == "gelu":
            if g.opset >= 20:
                return g.op("Gelu", [x])
            e = g.op("Erf", [g.op("Div", [x, g.f(math.sqrt(2))])])
            return g.op("Mul", [g.op("Mul", [x, g.op("Add", [e, g.f(1)])]), g.f(.5)])
        if a == "gelu_tanh":                    # HF "gelu_new"
            if g.opset >= 20:
                return g.op("Gelu", [x], approximate="tanh")
            h = g.op("Mul", [x, g.f(.5)])
            c = g.op("Mul", [g.op("Pow", [x, g.f(3)]), g.f(.044715)])
            t = g.op("Tanh", [g.op("Mul", [g.op("Add", [x, c]), g.f(math.sqrt(2 / math.pi))])])
            return g.op("Mul", [h, g.op("Add", [t, g.f(1)])])
        raise ValueError(a)

    def conv(g, x, cin, cout, k, s=1, p=None, groups=1, name="", bn=None, bias=False, act=None,
             eps=1e-5, g2=2.0, scale=1.0, dil=1, pads=None):
        k = (k, k) if isinstance(k, int) else tuple(k)
        s = (s, s) if isinstance(s, int) else tuple(s)
        if p is None:
            p = tuple(dil * (q - 1) // 2 for q in k)
        p = (p, p) if isinstance(p, int) else tuple(p)
        pads = list(pads) if pads else list(p) + list(p)
        fan = cin // groups * k[0] * k[1]
        w = g.weight(name + ".weight", (cout, cin // groups) + k, fan, g2, (1, 2, 3))
        b = g.randn(name + ".bias", (cout,), .05) if bias else None
        g.params += w.size + (cout if bias else 0) + (2 * cout if bn else 0)
        if bn:
            ga, be, mu, va = g.bn_stats(bn, cout, scale)
        elif scale != 1.0:
            w = w * np.float32(scale)
        if bn and not g.o.with_bn:
            f = ga / np.sqrt(va + np.float32(eps))
            b = be + ((b if b is not None else 0) - mu) * f
            w = w * f.reshape(-1, 1, 1, 1)
        ins = [x, g.const(w, name + ".weight", True)]
        if b is not None:
            ins.append(g.const(b, name + ".bias", True))
        y = g.op("Conv", ins, kernel_shape=list(k), strides=list(s), pads=pads, group=groups, dilations=[dil, dil])
        if bn and g.o.with_bn:
            y = g.op("BatchNormalization", [y] + [g.const(v, bn + n, True) for v, n in
                     ((ga, ".weight"), (be, ".bias"), (mu, ".running_mean"), (va, ".running_var"))], epsilon=eps)
        return g.act(y, act)

    def conv1d(g, x, cin, cout, k, s, p, name, g2=1.0):
        w = g.weight(name + ".weight", (cout, cin, k), cin * k, g2, (1, 2))
        g.params += w.size + cout
        return g.op("Conv", [x, g.const(w, name + ".weight", True), g.const(g.randn(name + ".bias", (cout,), .02), name + ".bias", True)],
                    kernel_shape=[k], strides=[s], pads=[p, p], group=1, dilations=[1])

    def gemm(g, x, cin, cout, name, g2=1.0, act=None, bias=True, bn=None, eps=1e-3):
        w = g.weight(name + ".weight", (cout, cin), cin, g2, (1,))
        b = g.randn(name + ".bias", (cout,), .05)
        g.params += w.size + cout + (2 * cout if bn else 0)
        if bn:
            ga, be, mu, va = g.bn_stats(bn, cout, 1.0)
            if not g.o.with_bn:
                f = ga / np.sqrt(va + np.float32(eps))
                w, b = w * f[:, None], be + (b - mu) * f
        y = g.op("Gemm", [x, g.const(w, name + ".weight", True), g.const(b, name + ".bias", True)], transB=1)
        if bn and g.o.with_bn:
            y = g.op("BatchNormalization", [y] + [g.const(v, bn + n, True) for v, n in
                     ((ga, ".weight"), (be, ".bias"), (mu, ".running_mean"), (va, ".running_var"))], epsilon=eps)
        return g.act(y, act)

    def linear(g, x, cin, cout, name, bias=True, g2=1.0, scale=1.0):
        """As torch exports nn.Linear on a 3-D input: MatMul with a transposed weight, then Add."""
        w = g.weight(name + ".weight", (cout, cin), cin, g2) * np.float32(scale)
        g.params += w.size + (cout if bias else 0)
        y = g.op("MatMul", [x, g.const(w.T, name + ".weight_t", True)])
        return g.op("Add", [g.const(g.randn(name + ".bias", (cout,), .02), name + ".bias", True), y]) if bias else y

    def reduce_mean(g, x, axes, keep=1):
        if g.opset >= 18:
            return g.op("ReduceMean", [x, g.i64(*axes)], keepdims=keep)
        return g.op("ReduceMean", [x], axes=list(axes), keepdims=keep)

    def layernorm(g, x, d, name, eps=1e-5):
        w, b = g.randn(name + ".weight", (d,), .1, 1.0), g.randn(name + ".bias", (d,), .05)
        g.params += 2 * d
        w, b = g.const(w, name + ".weight", True), g.const(b, name + ".bias", True)
        if g.opset >= 17:
            return g.op("LayerNormalization", [x, w, b], axis=-1, epsilon=eps)
        c = g.op("Sub", [x, g.reduce_mean(x, [-1])])
        v = g.reduce_mean(g.op("Pow", [c, g.f(2)]), [-1])
        n = g.op("Div", [c, g.op("Sqrt", [g.op("Add", [v, g.f(eps)])])])
        return g.op("Add", [g.op("Mul", [n, w]), b])

    def rmsnorm(g, x, d, name, eps=1e-5):
        g.params += d
        w = g.const(g.randn(name + ".weight", (d,), .1, 1.0), name + ".weight", True)
        if g.opset >= 23:
            return g.op("RMSNormalization", [x, w], axis=-1, epsilon=eps)
        v = g.reduce_mean(g.op("Pow", [x, g.f(2)]), [-1])
        r = g.op("Reciprocal", [g.op("Sqrt", [g.op("Add", [v, g.f(eps)])])])
        return g.op("Mul", [w, g.op("Mul", [x, r])])

    def embedding(g, ids, n, d, name, std=1.0, count=True):
        if count:
            g.params += n * d
        return g.op("Gather", [g.const(g.randn(name + ".weight", (n, d), std), name + ".weight", True), ids], axis=0)

    def split(g, x, sizes, axis):
        return g.op("Split", [x, g.i64(*sizes)], n=len(sizes), axis=axis)

    def gap_flat(g, x):
        return g.op("Flatten", [g.op("GlobalAveragePool", [x])], axis=1)

    def heads(g, x, b, s, h, d):               # [B,S,h*d] -> [B,h,S,d]
        return g.op("Transpose", [g.reshape(x, [b, s, h, d])], perm=[0, 2, 1, 3])

    def sdpa(g, q, k, v, d, mask=None):        # eager attention as HF exports it
        sc = g.op("MatMul", [q, g.op("Transpose", [k], perm=[0, 1, 3, 2])])
        sc = g.op("Div", [sc, g.f(math.sqrt(d))])
        if mask:
            sc = g.op("Add", [sc, mask])
        return g.op("MatMul", [g.op("Softmax", [sc], axis=-1), v])

    def model(g):
        graph = helper.make_graph(g.nodes, g.mname, g.inputs, g.outputs, list(g.inits.values()))
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)], producer_name="make_models")
        m.ir_version = {**{v: 7 for v in range(11, 15)}, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10,
                        23: 11, 24: 12}.get(g.opset, 8)
        helper.set_model_props(m, {"make_models.io": json.dumps(g.io, sort_keys=True),
                                   "make_models.params": str(g.params)})
        return m
