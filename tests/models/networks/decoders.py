"""Decoders with a KV cache: GPT-2, Llama."""
import math

import numpy as np
from onnx import TensorProto

from networks.builder import I64
from networks.registry import N, model


@model("gpt2", 124439808, None, "transformer", L=12, D=768, H=12, vocab=50257)
@model("gpt2_tiny", None, None, "transformer small", L=2, D=128, H=4, vocab=1000)
def gpt2(g, L, D, H, vocab, npos=1024):
    S, P, d = g.o.seq or 8, g.o.past, D // H
    n, s, p_, t_ = N(g), ("S", S), ("P", P), ("T", P + S)
    ids = g.inp("input_ids", [n, s], I64, "randint", 0, vocab)
    pos = g.inp("position_ids", [n, s], I64, "positions")
    past = [[g.inp("past_key_values.%d.%s" % (i, kv), [n, H, p_, d], kind="normal") for kv in ("key", "value")] for i in range(L)]
    b, sl = g.dim(ids, 0, g.B), g.dim(ids, 1, S)
    x = g.op("Add", [g.embedding(ids, vocab, D, "wte", 1.0), g.embedding(pos, npos, D, "wpe", .2)])
    bias = g.const(np.tril(np.ones((npos, npos), bool))[None, None], "attn.bias")

    def conv1d(x, ci, co, n, g2=1.0, sc=1.0):
        w = g.weight(n + ".weight", (ci, co), ci, g2) * np.float32(sc)
        g.params += w.size + co
        y = g.op("Gemm", [g.reshape(x, [-1, ci]), g.const(w, n + ".weight", True), g.const(g.randn(n + ".bias", (co,), .02), n + ".bias", True)])
        return g.reshape(y, [b, sl, co])
    pres, mask = [], None
    for i in range(L):
        p = "h.%d." % i
        q, k, v = (g.heads(y, b, sl, H, d) for y in g.split(conv1d(g.layernorm(x, D, p + "ln_1"), D, 3 * D, p + "attn.c_attn"), [D, D, D], 2))
        k, v = g.op("Concat", [past[i][0], k], axis=2), g.op("Concat", [past[i][1], v], axis=2)
        pres += [k, v]
        if mask is None:
            if g.dyn:
                T = g.dim(k, 2, P + S)
                mask = g.op("Slice", [bias, g.op("Sub", [T, sl]), T, g.i64(2)])
                mask = g.op("Slice", [mask, g.i64(0), T, g.i64(3)])
            else:
                mask = g.op("Slice", [g.op("Slice", [bias, g.i64(P), g.i64(P + S), g.i64(2)]), g.i64(0), g.i64(P + S), g.i64(3)])
        sc = g.op("Div", [g.op("MatMul", [q, g.op("Transpose", [k], perm=[0, 1, 3, 2])]), g.f(math.sqrt(d))])
        sc = g.op("Where", [mask, sc, g.f(float(np.finfo(g.np).min))])
        h = g.op("MatMul", [g.op("Softmax", [sc], axis=-1), v])
        h = g.reshape(g.op("Transpose", [h], perm=[0, 2, 1, 3]), [b, sl, D])
        x = g.op("Add", [conv1d(h, D, D, p + "attn.c_proj", sc=.5), x])
        h = g.act(conv1d(g.layernorm(x, D, p + "ln_2"), D, 4 * D, p + "mlp.c_fc"), "gelu_tanh")
        x = g.op("Add", [x, conv1d(h, 4 * D, D, p + "mlp.c_proj", 2.3, .5)])
    x = g.layernorm(x, D, "ln_f")
    x = g.op("Mul", [x, g.f(D ** -.5)])           # wte has unit variance here, so logits stay ~N(0,1)
    g.out(g.op("MatMul", [x, g.op("Transpose", ["wte.weight"], perm=[1, 0])]), "logits", [n, s, vocab])
    for i in range(L):
        for j, kv in enumerate(("key", "value")):
            g.out(pres[2 * i + j], "present.%d.%s" % (i, kv), [n, H, t_, d])


@model("llama_stories15m", 15191712, None, "transformer", L=6, D=288, H=6, KV=6, F=768, vocab=32000)  # karpathy/llama2.c
@model("llama15m_gqa", None, None, "transformer", L=6, D=288, H=6, KV=2, F=768, vocab=32000)
@model("llama_tiny_gqa", None, None, "transformer small", L=2, D=128, H=4, KV=2, F=352, vocab=1000)
def llama(g, L, D, H, KV, F, vocab):
    S, P, d = g.o.seq or 8, g.o.past, D // H
    n, s, p_, t_ = N(g), ("S", S), ("P", P), ("T", P + S)
    ids = g.inp("input_ids", [n, s], I64, "randint", 0, vocab)
    am = g.inp("attention_mask", [n, t_], I64, "ones")
    pos = g.inp("position_ids", [n, s], I64, "positions")
    past = [[g.inp("past_key_values.%d.%s" % (i, kv), [n, KV, p_, d], kind="normal") for kv in ("key", "value")] for i in range(L)]
    b, sl = g.dim(ids, 0, g.B), g.dim(ids, 1, S)
    x = g.embedding(ids, vocab, D, "model.embed_tokens", 1.0)
    # rotary embedding from position_ids, as HF LlamaRotaryEmbedding exports
    inv = g.const((1.0 / 10000 ** (np.arange(0, d, 2) / d)).astype(np.float32).reshape(1, d // 2, 1), "inv_freq")
    pf = g.op("Cast", [g.op("Unsqueeze", [pos, g.i64(1)])], to=g.ft)
    fr = g.op("Transpose", [g.op("MatMul", [inv, pf])], perm=[0, 2, 1])
    emb = g.op("Concat", [fr, fr], axis=-1)
    cos, sin = (g.op("Unsqueeze", [g.op(o, [emb]), g.i64(1)]) for o in ("Cos", "Sin"))
    # causal + padding mask
    T = g.op("Shape", [am]) if g.dyn else None
    T = g.op("Gather", [T, g.const(np.array(1, np.int64), "ax")], axis=0) if g.dyn else g.const(np.array(P + S, np.int64), "T")
    kpos = g.op("Range", [g.const(np.array(0, np.int64), "ax"), T, g.const(np.array(1, np.int64), "ax")])
    ok = g.op("LessOrEqual", [g.op("Unsqueeze", [kpos, g.i64(0, 1)]), g.op("Unsqueeze", [pos, g.i64(2)])])
    ok = g.op("And", [g.op("Unsqueeze", [ok, g.i64(1)]), g.op("Cast", [g.op("Unsqueeze", [am, g.i64(1, 2)])], to=TensorProto.BOOL)])
    mask = g.op("Where", [ok, g.f(0), g.f(float(np.finfo(g.np).min))])

    def rope(v):
        INT_MAX = 2 ** 63 - 1
        a = g.op("Slice", [v, g.i64(0), g.i64(d // 2), g.i64(3)])
        c = g.op("Slice", [v, g.i64(d // 2), g.i64(INT_MAX), g.i64(3)])
        return g.op("Add", [g.op("Mul", [v, cos]), g.op("Mul", [g.op("Concat", [g.op("Neg", [c]), a], axis=-1), sin])])

    def repeat(v):                              # HF repeat_kv
        if KV == H:
            return v
        tl = g.dim(v, 2, P + S)
        e = g.op("Expand", [g.op("Unsqueeze", [v, g.i64(2)]), g.shape_of([b, KV, H // KV, tl, d])])
        return g.reshape(e, [b, H, tl, d])
    pres = []
    for i in range(L):
        p = "model.layers.%d." % i
        h = g.rmsnorm(x, D, p + "input_layernorm")
        q = g.heads(g.linear(h, D, D, p + "self_attn.q_proj", False), b, sl, H, d)
        k = g.heads(g.linear(h, D, KV * d, p + "self_attn.k_proj", False), b, sl, KV, d)
        v = g.heads(g.linear(h, D, KV * d, p + "self_attn.v_proj", False), b, sl, KV, d)
        q, k = rope(q), rope(k)
        k, v = g.op("Concat", [past[i][0], k], axis=2), g.op("Concat", [past[i][1], v], axis=2)
        pres += [k, v]
        h = g.sdpa(q, repeat(k), repeat(v), d, mask)
        h = g.reshape(g.op("Transpose", [h], perm=[0, 2, 1, 3]), [b, sl, D])
        x = g.op("Add", [x, g.linear(h, D, D, p + "self_attn.o_proj", False, scale=.7)])
        h = g.rmsnorm(x, D, p + "post_attention_layernorm")
        gt = g.act(g.linear(h, D, F, p + "mlp.gate_proj", False), "silu")
        h = g.op("Mul", [gt, g.linear(h, D, F, p + "mlp.up_proj", False)])
        x = g.op("Add", [x, g.linear(h, F, D, p + "mlp.down_proj", False, g2=2.0)])
    x = g.op("Mul", [g.rmsnorm(x, D, "model.norm"), g.f(D ** -.5)])
    g.out(g.op("MatMul", [x, g.op("Transpose", ["model.embed_tokens.weight"], perm=[1, 0])]), "logits", [n, s, vocab])
    for i in range(L):
        for j, kv in enumerate(("key", "value")):
            g.out(pres[2 * i + j], "present.%d.%s" % (i, kv), [n, KV, t_, d])
