#!/usr/bin/env python3
"""Makes microsoft.tar.gz beside this file: tests in ONNX's layout, with onnxruntime's results, of the com.microsoft ops and
of what ONNX's own tests leave out.

Needs onnx and onnxruntime (1.32 made what is checked in):  python3 tests/conformance/microsoft.py
"""
import gzip
import pathlib
import tarfile
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

ARCHIVE = pathlib.Path(__file__).with_name("microsoft.tar.gz")
HERE = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(20)


def f32(*shape):
    return np.round(rng.standard_normal(shape), 2).astype(np.float32)


def u8(*shape):
    return rng.integers(0, 256, shape).astype(np.uint8)


def s8(*shape):
    return rng.integers(-128, 128, shape).astype(np.int8)


def ids(most, *shape, dtype=np.int64):
    return rng.integers(0, most, shape).astype(dtype)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def results_of(model, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feeds)


def plain_op(op, *inputs, **attributes):
    """The result of one of ONNX's own ops."""
    names = [f"i{i}" for i in range(len(inputs))]
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in zip(names, inputs)]
    graph = helper.make_graph([helper.make_node(op, names, ["o"], **attributes)], op, infos,
                              [helper.make_empty_tensor_value_info("o")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return results_of(model, dict(zip(names, inputs)))[0]


def write(name, op, inputs, attributes=None, outputs=1, absent=(), fixed=(), domain="com.microsoft", version=1, opset=17,
          wanted=None):
    """`inputs`: arrays, None for one that is absent; `fixed`: which of them are initializers; `wanted`: the results of an
    op that onnxruntime has on other devices alone."""
    given = {i: a for i, a in enumerate(inputs) if a is not None}
    names = [f"i{i}" if i in given else "" for i in range(len(inputs))]
    results = ["" if j in absent else f"o{j}" for j in range(outputs)]
    node = helper.make_node(op, names, results, op, domain=domain, **(attributes or {}))
    info = lambda n, a: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
    graph = helper.make_graph(
        [node], name, [info(f"i{i}", a) for i, a in given.items() if i not in fixed],
        [helper.make_empty_tensor_value_info(r) for r in results if r],
        [numpy_helper.from_array(given[i], f"i{i}") for i in fixed])
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, version)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset <= 17 else 10)
    feeds = {f"i{i}": a for i, a in given.items() if i not in fixed}
    wanted = wanted or results_of(model, feeds)
    for o, w in zip(model.graph.output, wanted):
        o.CopyFrom(info(o.name, w))
    data = HERE / f"test_{name}" / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, data.parent / "model.onnx")
    for kind, arrays in (("input", feeds.values()), ("output", wanted)):
        for i, a in enumerate(arrays):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(a).SerializeToString())


def norms():
    for name, skip in (("same", (2, 3, 8)), ("one_batch", (1, 3, 8)), ("no_batch", (3, 8))):
        write(f"skip_layer_norm_{name}", "SkipLayerNormalization",
              [f32(2, 3, 8), f32(*skip), f32(8), f32(8), f32(8)], {"epsilon": 1e-5}, 4, (1, 2))
    write("skip_layer_norm_no_beta", "SkipLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)])
    write("skip_rms_norm", "SkipSimplifiedLayerNormalization", [f32(2, 3, 8), f32(2, 3, 8), f32(8)], {}, 4, (1, 2))
    words, segments = ids(10, 2, 4, dtype=np.int32), ids(2, 2, 4, dtype=np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    write("embed_layer_norm", "EmbedLayerNormalization",
          [words, segments, f32(10, 8), f32(6, 8), f32(2, 8), f32(8), f32(8), mask], {}, 3)
    write("embed_layer_norm_no_segments", "EmbedLayerNormalization",
          [words, None, f32(10, 8), f32(6, 8), None, f32(8), f32(8)], {}, 2)
    write("embed_layer_norm_positions", "EmbedLayerNormalization",
          [words, segments, f32(10, 8), f32(6, 8), f32(2, 8), f32(8), f32(8), None, ids(6, 2, 4, dtype=np.int32)], {}, 2)
    write("bias_gelu", "BiasGelu", [f32(2, 8), f32(8)])
    write("fast_gelu", "FastGelu", [f32(2, 8), f32(8)])
    write("gelu", "Gelu", [f32(2, 8)])
    write("quick_gelu", "QuickGelu", [f32(2, 8)], {"alpha": 1.3})


def fused():
    write("fused_matmul", "FusedMatMul", [f32(2, 4, 3), f32(2, 5, 4)], {"alpha": 2.0, "transA": 1, "transB": 1})
    write("fused_matmul_batch", "FusedMatMul", [f32(4, 2, 3), f32(4, 2, 5)],
          {"transBatchA": 1, "transBatchB": 1, "transA": 1})
    write("fused_matmul_vector", "FusedMatMul", [f32(4), f32(2, 4, 5)], {"transA": 1})
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    for act, params in (("Relu", None), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 0.7]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation": act} | ({"activation_params": params} if params else {})
        write(f"fused_conv_{act.lower()}", "FusedConv", [f32(1, 2, 4, 4), f32(3, 2, 3, 3), f32(3)], window | more)
    write("fused_conv_sum", "FusedConv", [f32(1, 2, 4, 4), f32(3, 2, 3, 3), f32(3), f32(1, 3, 4, 4)],
          window | {"activation": "Relu"})
    write("fused_gemm", "FusedGemm", [f32(4, 3), f32(5, 4), f32(3, 5)],
          {"activation": "LeakyRelu", "activation_alpha": 0.3, "transA": 1, "transB": 1})
    write("inverse", "Inverse", [f32(2, 3, 3)])


def quantised():
    def n_bits(name, bits, n=6, k=32, block=16, zero=None, bias=False, groups=False):
        g = -(-k // block)
        zeros = {"packed": u8(n, -(-g * bits // 8)), "float": f32(n, g) + 2 ** (bits - 1), None: None}[zero]
        order = ids(g, k, dtype=np.int32) if groups else None
        inputs = [f32(2, 3, k), u8(n, g, block * bits // 8), f32(n, g), zeros, order, f32(n) if bias else None]
        while inputs[-1] is None:
            inputs.pop()
        write(f"matmul_nbits_{name}", "MatMulNBits", inputs, {"K": k, "N": n, "bits": bits, "block_size": block})

    n_bits("4", 4)
    n_bits("4_zero", 4, k=48, zero="packed")
    n_bits("4_zero_float", 4, zero="float")
    n_bits("4_groups", 4, groups=True)
    n_bits("4_ragged_bias", 4, k=40, bias=True)
    n_bits("8_zero", 8, zero="packed")
    n_bits("2", 2)
    n_bits("2_zero", 2, k=80, zero="packed")
    for bits, zero in ((4, False), (4, True), (8, True)):
        inputs = [u8(5, 32 * bits // 8), ids(5, 2, 3), f32(5, 2)] + ([u8(5, 2 * bits // 8)] if zero else [])
        write(f"gather_block_quantized_{bits}{'_zero' if zero else ''}", "GatherBlockQuantized", inputs,
              {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1})
    write("matmul_integer_to_float", "MatMulIntegerToFloat",
          [u8(2, 3, 4), u8(4, 5), scalar(0.1), np.abs(f32(5)) + 0.01, scalar(120, np.uint8), u8(5), f32(5)])
    write("matmul_integer_to_float_signed", "MatMulIntegerToFloat", [u8(3, 4), s8(4, 5), scalar(0.1), scalar(0.2)])
    write("dynamic_quantize_matmul", "DynamicQuantizeMatMul",
          [f32(2, 3, 4), u8(4, 5), np.abs(f32(5)) + 0.01, u8(5), f32(5)])
    a, b = [u8(3, 8), scalar(0.02), scalar(100, np.uint8)], [u8(8, 5), scalar(0.03), scalar(120, np.uint8)]
    c = ids(2000, 5, dtype=np.int32)
    write("qgemm", "QGemm", a + b + [c, scalar(0.31), scalar(110, np.uint8)])
    write("qgemm_float", "QGemm", a + b + [c])
    write("qgemm_columns", "QGemm",
          [u8(8, 3), scalar(0.02), scalar(100, np.uint8), s8(5, 8), np.abs(f32(5)) * 0.03 + 0.01, s8(5),
           ids(2000, 3, 5, dtype=np.int32), scalar(0.3), scalar(110, np.uint8)],
          {"transA": 1, "transB": 1, "alpha": 0.5})
    x = [scalar(0.053), scalar(117, np.uint8)]
    y = [scalar(0.071), scalar(90, np.uint8)]
    z = [scalar(0.131), scalar(128, np.uint8)]
    write("qlinear_add", "QLinearAdd", [u8(2, 3, 4), *x, u8(3, 4), *y, *z])
    write("qlinear_mul", "QLinearMul", [u8(2, 3, 4), *x, u8(3, 4), *y, *z])
    write("qlinear_where", "QLinearWhere", [ids(2, 3, 4).astype(bool), u8(3, 4), *x, u8(3, 4), *y, *z])
    write("qlinear_concat", "QLinearConcat", [*x, u8(2, 3), *y, u8(2, 4), *z], {"axis": 1})
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    write("qlinear_average_pool", "QLinearAveragePool", [u8(1, 2, 5, 5), *x, *y], window)
    write("qlinear_average_pool_padding", "QLinearAveragePool", [u8(1, 2, 5, 5), *x, *y],
          window | {"count_include_pad": 1})
    write("qlinear_average_pool_last", "QLinearAveragePool", [u8(1, 5, 5, 2), *x, *y], window | {"channels_last": 1})
    write("qlinear_global_average_pool", "QLinearGlobalAveragePool", [u8(2, 3, 4, 4), *x, *y], {"channels_last": 0})
    write("qlinear_global_average_pool_last", "QLinearGlobalAveragePool", [u8(2, 4, 4, 3), *x, *y],
          {"channels_last": 1})
    part = [scalar(1 / 256), scalar(0, np.uint8)]
    write("qlinear_softmax", "QLinearSoftmax", [u8(3, 8), *x, *part], {"axis": -1, "opset": 13})
    write("qlinear_softmax_flat", "QLinearSoftmax", [u8(3, 2, 4), *x, *part], {"axis": 1, "opset": 11})
    write("qlinear_sigmoid", "QLinearSigmoid", [u8(3, 8), *x, *part], fixed=(1, 2, 3, 4))
    write("qlinear_leaky_relu", "QLinearLeakyRelu", [u8(3, 8), *x, *y], {"alpha": 0.2}, fixed=(1, 2, 3, 4))
    write("quantize_linear_16", "QuantizeLinear", [f32(3, 4), scalar(0.02), scalar(100, np.uint16)])
    write("dequantize_linear_axis", "DequantizeLinear", [u8(3, 4), np.abs(f32(4)) + 0.01, u8(4)], {"axis": 1})


def attention():
    b, s, n, h = 2, 3, 2, 4

    def mha(name, t=s, hv=h, past=0, bias=False, mask=None, add=None, outputs=1, heads_first=False, **attributes):
        k = f32(b, n, t, h) if heads_first else f32(b, t, n * h)
        v = f32(b, n, t, hv) if heads_first else f32(b, t, n * hv)
        inputs = [f32(b, s, n * h), k, v, f32(n * (2 * h + hv)) if bias else None, mask,
                  None if add is None else f32(*add), f32(b, n, past, h) if past else None,
                  f32(b, n, past, hv) if past else None]
        while inputs[-1] is None:
            inputs.pop()
        write(f"multi_head_attention_{name}", "MultiHeadAttention", inputs, {"num_heads": n} | attributes, outputs)

    keys = np.array([[1, 0, 1], [1, 1, 0]], np.int32)
    rows = ids(2, b, s, s, dtype=np.int32) | np.array([1, 0, 0], np.int32)
    mha("cross", t=5, hv=6)
    mha("bias", bias=True, past=4, outputs=3)
    mha("lengths", mask=np.array([2, 3], np.int32))
    mha("hidden_keys", mask=keys, mask_filter_value=-3.0)
    mha("hidden_keys_causal", mask=keys, unidirectional=1)
    mha("mask", mask=rows)
    mha("added", add=(1, n, s, s), scale=0.3)
    mha("past_causal", past=4, outputs=3, unidirectional=1)
    mha("heads_first", t=5, heads_first=True)

    def packed(name, mask=None, past=0, add=None, sizes=(8, 8, 8), outputs=1, **attributes):
        inputs = [f32(b, s, 6), f32(6, sum(sizes)), f32(sum(sizes)), mask, f32(2, b, n, past, h) if past else None,
                  None if add is None else f32(*add)]
        while inputs[-1] is None:
            inputs.pop()
        write(f"attention_{name}", "Attention", inputs, {"num_heads": n} | attributes, outputs)

    packed("plain")
    packed("lengths", np.array([2, 3], np.int32))
    packed("starts", np.array([3, 3, 0, 1], np.int32))
    packed("hidden_keys", keys)
    packed("mask", rows)
    packed("past_causal", past=2, outputs=2, unidirectional=1)
    packed("sizes", sizes=(8, 8, 12), qkv_hidden_sizes=[8, 8, 12])
    packed("added", add=(b, n, s, s), scale=0.2)

    angle = np.outer(np.arange(20), 10000.0 ** (-np.arange(8) / 8))
    tables = [np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)]

    def gqa(name, s=1, past=0, lengths=None, total=None, rotary=False, packed=False, outputs=3, size=16, extra=(),
            **attributes):
        lengths = lengths or [past + s] * b
        q, k, v = f32(b, s, 4 * size), f32(b, s, 2 * size), f32(b, s, 2 * size)
        qkv = [f32(b, s, 8 * size), None, None] if packed else [q, k, v]
        caches = [f32(b, 2, past, size), f32(b, 2, past, size)]
        for cache in caches:  # what lies beyond a sequence is free; onnxruntime makes it zero
            for i, length in enumerate(lengths):
                cache[i, :, max(length - s, 0):] = 0
        inputs = qkv + caches + [np.array(lengths, np.int32) - 1, scalar(total or max(lengths), np.int32)]
        inputs += (tables if rotary else []) + list(extra)
        write(f"group_query_attention_{name}", "GroupQueryAttention", inputs,
              {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary)} | attributes, outputs)

    gqa("prompt", s=5)
    gqa("token", past=6, rotary=True)
    gqa("buffer", past=9, lengths=[7, 4], total=7, rotary=True)
    gqa("interleaved", s=3, rotary=True, packed=True, rotary_interleaved=1)
    gqa("window", past=9, local_window_size=4)
    gqa("window_prompt", s=7, local_window_size=3)
    gqa("softcap", past=6, softcap=2.0, scale=0.2)
    gqa("added", s=5, extra=(None, None, None, f32(1, 1, 5, 5)))
    gqa("positions", past=6, rotary=True, extra=(np.array([[6], [3]], np.int64),))

    cos, sin = f32(16, 4), f32(16, 4)
    write("rotary_embedding", "RotaryEmbedding", [f32(2, 3, 16), ids(16, 2, 3), cos, sin])
    write("rotary_embedding_offset", "RotaryEmbedding", [f32(2, 3, 16), np.array([4]), cos, sin])
    write("rotary_embedding_interleaved", "RotaryEmbedding", [f32(2, 2, 3, 8), ids(16, 2, 3), cos, sin],
          {"interleaved": 1})
    write("rotary_embedding_part", "RotaryEmbedding", [f32(2, 3, 32), ids(16, 2, 3), cos, sin],
          {"rotary_embedding_dim": 8, "num_heads": 2})


def more_attention():
    b, s, n, h = 2, 3, 2, 4

    def quantised(name, mask=None, past=0, kind=u8, columns=1, **attributes):
        scale = scalar(0.004) if columns == 1 else np.abs(f32(24)) * 0.003 + 0.002
        zero = scalar(3, kind(1).dtype) if columns == 1 else kind(24)
        inputs = [u8(b, s, 6), kind(6, 24), f32(24), scalar(0.02), scale, mask, scalar(117, np.uint8), zero,
                  f32(2, b, n, past, h) if past else None]
        while inputs[-1] is None:
            inputs.pop()
        write(f"qattention_{name}", "QAttention", inputs, {"num_heads": n} | attributes, 1 + (past > 0))

    quantised("plain")
    quantised("columns_signed", kind=s8, columns=24)
    quantised("lengths", np.array([2, 3], np.int32))
    quantised("hidden_keys", np.array([[1, 0, 1], [1, 1, 0]], np.int32))
    quantised("past_causal", past=2, unidirectional=1)

    def decoder(name, past=0, room=None, cross=0, bias=False, mask=None, outputs=3):
        width = n * h
        if cross:
            inputs = [f32(b, 1, width), f32(b, n, cross, h), f32(b, n, cross, h), mask]
        else:
            inputs = [f32(b, 1, width), f32(b, 1, width), f32(b, 1, width), mask, None, f32(b, n, room or past, h),
                      f32(b, n, room or past, h), np.array([past], np.int32) if room else None, None, None,
                      f32(3 * width) if bias else None]
        while inputs[-1] is None:
            inputs.pop()
        write(f"decoder_attention_{name}", "DecoderMaskedMultiHeadAttention", inputs,
              {"num_heads": n, "past_present_share_buffer": int(bool(room))}, outputs)

    decoder("buffer", past=4, room=7, bias=True)
    decoder("cross", cross=5, outputs=1)
    decoder("cross_hidden", cross=3, mask=np.array([[1, 1, 0], [1, 1, 1]], np.int32), outputs=1)

    def experts(name, fused=0, third=False, bias=True, tokens=(3,), size=8, inner=6, count=4, **attributes):
        rows = inner * (2 if fused else 1)
        inputs = [f32(*tokens, size), f32(int(np.prod(tokens)), count), f32(count, rows, size),
                  f32(count, rows) if bias else None, f32(count, size, inner), f32(count, size) if bias else None,
                  f32(count, inner, size) if third else None, f32(count, inner) if third and bias else None]
        while inputs[-1] is None:
            inputs.pop()
        if fused:
            attributes["swiglu_fusion"] = fused
        write(f"moe_{name}", "MoE", inputs, {"k": 2} | attributes)

    experts("relu")
    experts("gelu_normalised", activation_type="gelu", normalize_routing_weights=1)
    experts("silu", activation_type="silu", bias=False, tokens=(2, 3))
    experts("swiglu", fused=1, activation_type="swiglu", activation_alpha=1.702, activation_beta=1.0, swiglu_limit=1.5,
            normalize_routing_weights=1)

    def q_experts(name, bits=4, block=0, zero=False, size=32, inner=32, count=3, tokens=4, fused=True, mixing=False,
                  **attributes):
        def layer(rows, columns):
            scales = (count, rows, columns // block) if block else (count, rows)
            return [u8(count, rows, columns * bits // 8), np.abs(f32(*scales)) * 0.05 + 0.01, f32(count, rows)]

        rows = inner * (2 if fused else 1)
        inputs = [f32(tokens, size), f32(tokens, count)] + layer(rows, size) + layer(size, inner)
        inputs += [None] * 3
        blocks = lambda columns: -(-columns // block * bits // 8)
        inputs += [u8(count, rows, blocks(size)), u8(count, size, blocks(inner)), None] if zero else [None] * 3
        inputs += [np.abs(f32(tokens, count)) if mixing else None]
        while inputs[-1] is None:
            inputs.pop()
        kind = {"activation_type": "swiglu", "swiglu_fusion": 1} if fused else {"activation_type": "silu"}
        write(f"qmoe_{name}", "QMoE", inputs, {"k": 2, "expert_weight_bits": bits} | kind | attributes
              | ({"block_size": block} if block else {}))

    q_experts("4")
    q_experts("8", bits=8)
    q_experts("4_blocks", block=16, normalize_routing_weights=1)
    q_experts("4_blocks_zero", block=16, zero=True)
    q_experts("4_silu", fused=False)
    q_experts("4_mixing", mixing=True, normalize_routing_weights=1)

    angle = np.outer(np.arange(20), 10000.0 ** (-np.arange(8) / 8))
    tables = [np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)]

    def gqa(name, s=1, past=0, extra=(), outputs=3, size=16, kind=None, **attributes):
        inputs = [f32(b, s, 4 * size), f32(b, s, 2 * size), f32(b, s, 2 * size)]
        inputs += [f32(b, 2, past, size) if kind is None else kind(b, 2, past, size) for _ in range(2)]
        inputs += [np.array([past + s] * b, np.int32) - 1, scalar(past + s, np.int32), *tables, None] + list(extra)
        write(f"group_query_attention_{name}", "GroupQueryAttention", inputs,
              {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1} | attributes, outputs)

    gqa("smooth", past=6, smooth_softmax=1)
    gqa("sink", s=4, extra=(None, f32(4)))
    gqa("no_order", s=4, causal=0)
    gqa("scores", s=3, outputs=4, qk_output=1)
    gqa("weights", past=3, outputs=4, qk_output=2)
    for kind, scale in (("PER_TENSOR", lambda: scalar(0.0213).reshape(1)), ("PER_CHANNEL", lambda: np.abs(f32(2 * 16)) * 0.02 + 0.01)):
        gqa(f"cache_{kind.lower()}", past=3, kind=s8, extra=(None, None, scale(), scale()), k_quant_type=kind,
            v_quant_type=kind, kv_cache_bit_width=8)


def more_fused():
    last, first = (0, 2, 3, 1), (0, 3, 1, 2)
    x, y = [scalar(0.053), scalar(117, np.uint8)], [scalar(0.071), scalar(90, np.uint8)]
    window = {"kernel_shape": [3, 3], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    write("qlinear_conv_last", "QLinearConv",
          [u8(1, 5, 6, 2), *x, s8(3, 2, 3, 3), np.abs(f32(3)) * 0.02 + 0.01, np.zeros(3, np.int8), *y,
           ids(200, 3, dtype=np.int32)], window | {"channels_last": 1}, fixed=(1, 2, 3, 4, 5, 6, 7, 8))
    write("nhwc_max_pool", "NhwcMaxPool", [u8(1, 5, 6, 2)], window)
    image, weight, bias, more = f32(1, 5, 6, 2), f32(3, 2, 3, 3), f32(3), f32(1, 3, 5, 3)
    conv = plain_op("Conv", image.transpose(first), weight, bias, **window).transpose(last)
    write("nhwc_conv", "NhwcConv", [image, weight, bias], window, wanted=[conv])
    write("nhwc_fused_conv", "NhwcFusedConv", [image, weight, bias, more],
          window | {"activation": "Relu"}, wanted=[np.maximum(conv + more, 0)])
    write("matmul_integer16", "MatMulInteger16",
          [(s8(2, 3, 4) * np.int16(100)), (s8(4, 5) * np.int16(100))])
    a, b, c = f32(2, 3, 4), f32(4, 5) * np.float32(0.2), f32(5) * np.float32(0.2)
    write("fused_matmul_activation", "FusedMatMulActivation", [a.transpose(0, 2, 1), b],
          {"transA": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.1},
          wanted=[plain_op("LeakyRelu", a @ b * np.float32(0.5), alpha=0.1)])
    write("fused_matmul_softmax", "FusedMatMulActivation", [a, b], {"activation": "Softmax", "activation_axis": 1},
          wanted=[plain_op("Softmax", a @ b, axis=1)])
    write("gemm_fast_gelu", "GemmFastGelu", [a, b, c], wanted=[plain_op("Gelu", a @ b + c, approximate="tanh")])
    d, e = f32(2, 3, 8), f32(8)
    write("bias_add", "BiasAdd", [d, e, d[::-1].copy()], wanted=[d + e + d[::-1]])
    left, right = np.split(d + e, 2, axis=-1)
    write("bias_split_gelu", "BiasSplitGelu", [d, e], wanted=[left * plain_op("Gelu", right.copy())])
    scores, mask = f32(2, 3, 4, 4), f32(2, 1, 1, 4)
    write("bias_softmax", "BiasSoftmax", [scores, mask], {"axis": 3, "is_inner_broadcast": 1},
          wanted=[plain_op("Softmax", scores + mask, axis=3)])
    image, skip, shift, gamma, beta = f32(2, 3, 4, 6), f32(2, 6), f32(6), f32(6), f32(6)

    def norm(v):
        n = plain_op("GroupNormalization", v.transpose(first).copy(), gamma, beta, num_groups=2, epsilon=1e-5)
        return n.transpose(last)

    write("group_norm", "GroupNorm", [image, gamma, beta], {"groups": 2}, wanted=[norm(image)])
    summed = image + skip[:, None, None] + shift
    silu = norm(summed) / (1 + np.exp(-norm(summed)))
    write("skip_group_norm", "SkipGroupNorm", [image, gamma, beta, skip, shift], {"groups": 2, "activation": 1}, 2,
          wanted=[silu, summed])
    write("gated_rms_norm", "GatedRMSNorm", [f32(2, 3, 8), f32(4), f32(2, 3, 8)])
    write("scaled_silu", "ScaledSiLU", [f32(2, 8)], {"alpha": 1.5})
    q = u8(2, 3, 4)
    mean = ((q.astype(np.float32) - 117) * np.float32(0.053)).mean(axis=1)
    write("qlinear_reduce_mean", "QLinearReduceMean", [q, *x, *y], {"axes": [1], "keepdims": 0},
          wanted=[plain_op("QuantizeLinear", mean, *y)])
    words, segments = ids(10, 2, 4, dtype=np.int32), ids(2, 2, 4, dtype=np.int32)
    scales = [scalar(s) for s in (0.02, 0.01, 0.03, 0.05, 0.04)]
    zeros = [scalar(z, np.uint8) for z in (120, 128, 100, 30, 128)]
    write("q_embed_layer_norm", "QEmbedLayerNormalization",
          [words, segments, u8(10, 8), u8(6, 8), u8(2, 8), u8(8), u8(8),
           np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32), *scales, *zeros], {}, 2)
    write("cdist", "CDist", [f32(3, 4), f32(2, 4)], {"metric": "euclidean"})
    write("unfold_tensor", "UnfoldTensor", [f32(2, 7, 3)], {"dim": 1, "size": 3, "step": 2})
    gate, up = f32(2, 3, 4), f32(2, 3, 4)
    g, l = np.minimum(gate, 1), np.clip(up, -1, 1)
    write("swiglu", "SwiGLU", [gate, up], {"activation_alpha": 1.702, "activation_beta": 1.0, "limit": 1.0},
          wanted=[g / (1 + np.exp(-1.702 * g)).astype(np.float32) * (l + 1)])
    cos, sin = f32(16, 6), f32(16, 6)
    for layout, sections in ((0, [2, 3, 1]), (1, [2, 2, 2])):
        write(f"m_rotary_embedding_{layout}", "MRotaryEmbedding", [f32(2, 3, 24), ids(16, 3, 2, 3), cos, sin],
              {"mrope_section": sections, "mrope_layout": layout, "num_heads": 2})
    write("gather_nd", "GatherND", [f32(3, 4), ids(3, 2, 1)])
    write("grid_sample", "GridSample", [f32(1, 2, 4, 5), np.clip(f32(1, 3, 3, 2), -1, 1)], {"mode": "bicubic"})
    write("pad", "Pad", [f32(2, 3), np.array([1, 0, 0, 2]), scalar(0.5)], {"mode": "constant"})
    write("causal_conv_dilated", "CausalConvWithState", [f32(2, 3, 6), f32(3, 1, 3), f32(3), f32(2, 3, 4)],
          {"dilation": 2, "activation": "silu"}, 2)
    write("linear_attention", "LinearAttention",
          [f32(1, 3, 8), f32(1, 3, 8) * np.float32(0.2), f32(1, 3, 8), f32(1, 2, 4, 4), -np.abs(f32(1, 3, 2)),
           np.abs(f32(1, 3, 2))], {"q_num_heads": 2, "kv_num_heads": 2}, 2)


def classic():
    """Of ai.onnx.ml."""
    def ml(name, op, inputs, attributes, outputs=1):
        write(f"ml_{name}", op, inputs, attributes, outputs, domain="ai.onnx.ml", version=3)

    ml("scaler", "Scaler", [f32(3, 4)], {"offset": [0.5, 1, -1, 2], "scale": [2.0, 1, 0.5, 3]})
    ml("scaler_integers", "Scaler", [ids(9, 3, 4)], {"offset": [0.5], "scale": [2.0]})
    for norm in ("MAX", "L1", "L2"):
        x = np.abs(f32(3, 4))
        x[1] = 0
        ml(f"normalizer_{norm.lower()}", "Normalizer", [x], {"norm": norm})
    ml("linear_regressor", "LinearRegressor", [f32(3, 4)],
       {"coefficients": list(f32(8)), "intercepts": [0.5, -1.0], "targets": 2})
    for post in ("NONE", "LOGISTIC", "SOFTMAX"):
        ml(f"linear_classifier_{post.lower()}", "LinearClassifier", [f32(5, 4)],
           {"coefficients": list(f32(12)), "intercepts": [0.5, -1.0, 0.25], "classlabels_ints": [4, 7, 9],
            "post_transform": post}, 2)
    ml("feature_vectorizer", "FeatureVectorizer", [f32(3, 2), f32(3, 1)], {"inputdimensions": [2, 1]})
    x = f32(3, 4)
    x[1, 2] = np.nan
    ml("imputer", "Imputer", [x], {"imputed_value_floats": [1.0, 2, 3, 4], "replaced_value_float": float("nan")})
    ml("imputer_integers", "Imputer", [ids(3, 3, 4)], {"imputed_value_int64s": [7], "replaced_value_int64": 1})
    ml("one_hot_encoder", "OneHotEncoder", [ids(6, 3)], {"cats_int64s": [1, 3, 4], "zeros": 1})

    def trees(kind, classes, per_leaf, positive=False):
        """Two trees: of two branches, and of one."""
        nodes = {"treeids": [0] * 5 + [1] * 3, "nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
                 "featureids": [0, 1, 0, 0, 0, 2, 0, 0], "values": [0.1, -0.3, 0, 0, 0, 0.2, 0, 0],
                 "modes": ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
                 "truenodeids": [1, 3, 0, 0, 0, 1, 0, 0], "falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
                 "missing_value_tracks_true": [0, 1, 0, 0, 0, 0, 0, 0], "hitrates": [1.0] * 8}
        leaves = [(0, 2), (0, 3), (0, 4), (1, 1), (1, 2)]
        which = [(t, i, c) for t, i in leaves for c in per_leaf]
        weights = f32(len(which))
        out = {f"nodes_{k}": v for k, v in nodes.items()}
        return out | {f"{kind}_treeids": [t for t, _, _ in which], f"{kind}_nodeids": [i for _, i, _ in which],
                      f"{kind}_ids": [c for _, _, c in which],
                      f"{kind}_weights": list(np.abs(weights) if positive else weights)} | classes

    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        ml(f"tree_regressor_{how.lower()}", "TreeEnsembleRegressor", [f32(6, 3)],
           trees("target", {"n_targets": 2, "aggregate_function": how, "base_values": [0.5, -0.5]}, (0, 1)))
    three = {"classlabels_int64s": [3, 5, 8], "base_values": [0.1, 0.2, 0.3]}
    ml("tree_classifier_three", "TreeEnsembleClassifier", [f32(6, 3)],
       trees("class", three | {"post_transform": "SOFTMAX"}, (0, 1, 2)), 2)
    for name, positive, post, base in (("positive", True, "NONE", []), ("signed", False, "NONE", []),
                                       ("logistic", False, "LOGISTIC", [0.25]), ("softmax", True, "SOFTMAX", [])):
        two = {"classlabels_int64s": [10, 20], "post_transform": post} | ({"base_values": base} if base else {})
        ml(f"tree_classifier_{name}", "TreeEnsembleClassifier", [f32(6, 3)], trees("class", two, (0,), positive), 2)


def left_out():
    """Of ONNX's own ops."""
    def onnx_op(name, op, inputs, attributes=None, outputs=1, **more):
        write(name, op, inputs, attributes, outputs, domain="", **more)

    lengths = np.array([0, 2, 3], np.int32)
    for op, gates in (("RNN", 1), ("LSTM", 4), ("GRU", 3)):
        state = [f32(2, 3, 2)] * (2 if op == "LSTM" else 1)
        onnx_op(f"{op.lower()}_no_steps", op, [f32(3, 3, 2), f32(2, gates * 2, 2), f32(2, gates * 2, 2), None, lengths] + state,
                {"hidden_size": 2, "direction": "bidirectional"}, 1 + len(state))
    for auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        onnx_op(f"conv_transpose_{auto_pad.lower()}_small_kernel", "ConvTranspose", [f32(1, 2, 3, 4), f32(2, 3, 2, 2)],
                {"auto_pad": auto_pad, "strides": [3, 2]})
    for mode in ("edge", "reflect", "wrap"):
        onnx_op(f"pad_{mode}_negative", "Pad", [f32(5, 4), np.array([-1, 2, 2, -1])], {"mode": mode}, opset=19)
    onnx_op("pad_axes", "Pad", [f32(2, 3, 4), np.array([1, 2, 0, 1]), scalar(0.5), np.array([2, -3])], opset=18)
    onnx_op("einsum_thrice", "Einsum", [f32(2, 2, 2), f32(3, 2, 1)], {"equation": "lll,jik->ikj"})
    onnx_op("einsum_diagonals", "Einsum", [f32(3, 2, 3, 2)], {"equation": "abab->ba"})
    onnx_op("cumsum_list", "CumSum", [f32(4), scalar(-1, np.int64)])
    regions = np.array([[0, 0, 5, 7], [1, 2, 6, 3], [2, 2, 2, 2]], np.float32)
    for mode in ("avg", "max"):
        for coordinates in ("half_pixel", "output_half_pixel"):
            onnx_op(f"roi_align_{mode}_{coordinates}", "RoiAlign", [f32(2, 2, 8, 8), regions, np.array([0, 1, 0])],
                    {"mode": mode, "output_height": 2, "output_width": 3, "coordinate_transformation_mode": coordinates})


def plain(member):  # the same bytes whenever and by whomever it is made
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(4)
    for family in (norms, fused, quantised, attention, left_out, more_attention, more_fused, classic):
        family()
    with gzip.GzipFile(ARCHIVE, "wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        for test in sorted(HERE.iterdir()):
            tar.add(test, test.name, filter=plain)
    print(len(list(HERE.iterdir())), "tests")
