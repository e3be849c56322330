"""Transformer encoders: BERT, ViT, Whisper."""
import math

import numpy as np

from networks.builder import I64
from networks.registry import N, model


@model("bert_tiny", 4385920, None, "transformer small", L=2, D=128, H=2, S=128)
@model("bert_base", 109482240, None, "transformer", L=12, D=768, H=12, S=128)
def bert(g, L, D, H, S, vocab=30522, npos=512):
    S = g.o.seq or S
    sh = [N(g), ("S", S)]
    ids = g.inp("input_ids", sh, I64, "randint", 0, vocab)
    am = g.inp("attention_mask", sh, I64, "prefix_mask")
    tt = g.inp("token_type_ids", sh, I64, "randint", 0, 2)
    b, s = g.dim(ids, 0, g.B), g.dim(ids, 1, S)
    p = "embeddings."
    x = g.op("Add", [g.embedding(ids, vocab, D, p + "word_embeddings"), g.embedding(tt, 2, D, p + "token_type_embeddings")])
    pos = g.op("Slice", [g.const(np.arange(npos, dtype=np.int64)[None], "position_ids"), g.i64(0), g.dim_name(s), g.i64(1)])
    x = g.op("Add", [x, g.embedding(pos, npos, D, p + "position_embeddings")])
    x = g.layernorm(x, D, p + "LayerNorm", 1e-12 if g.o.dtype == "float32" else 1e-6)
    m = g.op("Cast", [g.op("Unsqueeze", [am, g.i64(1, 2)])], to=g.ft)
    m = g.op("Mul", [g.op("Sub", [g.f(1), m]), g.f(float(np.finfo(g.np).min))])
    for i in range(L):
        p = "encoder.layer.%d." % i
        q, k, v = (g.heads(g.linear(x, D, D, p + "attention.self." + n), b, s, H, D // H) for n in ("query", "key", "value"))
        c = g.reshape(g.op("Transpose", [g.sdpa(q, k, v, D // H, m)], perm=[0, 2, 1, 3]), [b, s, D])
        x = g.layernorm(g.op("Add", [g.linear(c, D, D, p + "attention.output.dense"), x]), D, p + "attention.output.LayerNorm", 1e-12 if g.o.dtype == "float32" else 1e-6)
        h = g.linear(g.act(g.linear(x, D, 4 * D, p + "intermediate.dense"), "gelu"), 4 * D, D, p + "output.dense", g2=2.3)
        x = g.layernorm(g.op("Add", [h, x]), D, p + "output.LayerNorm", 1e-12 if g.o.dtype == "float32" else 1e-6)
    cls = g.op("Gather", [x, g.const(np.array(0, np.int64), "ax")], axis=1)
    pool = g.gemm(cls, D, D, "pooler.dense", act="tanh")
    g.out(x, "last_hidden_state", sh + [D])
    g.out(pool, "pooler_output", [N(g), D])


@model("vit_tiny", 5717416, 1.254e9, "transformer small", D=192, H=3)     # timm/DeiT-Ti: 1.26 G
@model("vit_b16", 86567656, 17.56e9, "transformer", D=768, H=12)
def vit(g, D, H, L=12, P=16, size=224, classes=1000):
    x = g.inp("input", [N(g), 3, size, size])
    n, d = (size // P) ** 2, D // H
    b = g.dim(x, 0, g.B)
    x = g.conv(x, 3, D, P, P, 0, name="patch_embed.proj", bias=True, g2=1)
    x = g.op("Transpose", [g.reshape(x, [b, D, n])], perm=[0, 2, 1])
    cls = g.const(g.randn("cls_token", (1, 1, D), 1.0), "cls_token", True)
    g.params += D + (n + 1) * D
    x = g.op("Concat", [g.op("Expand", [cls, g.shape_of([b, 1, D])]), x], axis=1)
    x = g.op("Add", [x, g.const(g.randn("pos_embed", (1, n + 1, D), .3), "pos_embed", True)])
    for i in range(L):
        p = "blocks.%d." % i
        h = g.linear(g.layernorm(x, D, p + "norm1", 1e-6), D, 3 * D, p + "attn.qkv")
        h = g.op("Transpose", [g.reshape(h, [b, n + 1, 3, H, d])], perm=[2, 0, 3, 1, 4])
        q, k, v = (g.op("Gather", [h, g.const(np.array(j, np.int64), "ax")], axis=0) for j in range(3))
        q = g.op("Mul", [q, g.f(d ** -.5)])
        a = g.op("Softmax", [g.op("MatMul", [q, g.op("Transpose", [k], perm=[0, 1, 3, 2])])], axis=-1)
        h = g.reshape(g.op("Transpose", [g.op("MatMul", [a, v])], perm=[0, 2, 1, 3]), [b, n + 1, D])
        x = g.op("Add", [x, g.linear(h, D, D, p + "attn.proj")])
        h = g.act(g.linear(g.layernorm(x, D, p + "norm2", 1e-6), D, 4 * D, p + "mlp.fc1"), "gelu")
        x = g.op("Add", [x, g.linear(h, 4 * D, D, p + "mlp.fc2", g2=2.3, scale=.5)])
    x = g.layernorm(x, D, "norm", 1e-6)
    x = g.op("Gather", [x, g.const(np.array(0, np.int64), "ax")], axis=1)
    g.out(g.gemm(x, D, classes, "head"), "output", [N(g), classes])


@model("whisper_tiny_encoder", 8208384, None, "transformer speech", L=4, D=384, H=6)
def whisper_enc(g, L, D, H, T=3000, mels=80):
    x = g.inp("input_features", [N(g), mels, T])
    b, s = g.dim(x, 0, g.B), T // 2
    x = g.act(g.conv1d(x, mels, D, 3, 1, 1, "conv1"), "gelu")
    x = g.act(g.conv1d(x, D, D, 3, 2, 1, "conv2", g2=2.3), "gelu")
    x = g.op("Transpose", [x], perm=[0, 2, 1])
    g.params += s * D
    t = np.arange(s)[:, None] * np.exp(-math.log(10000) / (D // 2 - 1) * np.arange(D // 2))[None]
    x = g.op("Add", [x, g.const(np.concatenate([np.sin(t), np.cos(t)], 1).astype(np.float32), "embed_positions.weight", True)])
    for i in range(L):
        p = "layers.%d." % i
        h = g.layernorm(x, D, p + "self_attn_layer_norm")
        q = g.heads(g.op("Mul", [g.linear(h, D, D, p + "self_attn.q_proj"), g.f((D // H) ** -.5)]), b, s, H, D // H)
        k = g.heads(g.linear(h, D, D, p + "self_attn.k_proj", bias=False), b, s, H, D // H)
        v = g.heads(g.linear(h, D, D, p + "self_attn.v_proj"), b, s, H, D // H)
        a = g.op("Softmax", [g.op("MatMul", [q, g.op("Transpose", [k], perm=[0, 1, 3, 2])])], axis=-1)
        h = g.reshape(g.op("Transpose", [g.op("MatMul", [a, v])], perm=[0, 2, 1, 3]), [b, s, D])
        x = g.op("Add", [x, g.linear(h, D, D, p + "self_attn.out_proj")])
        h = g.act(g.linear(g.layernorm(x, D, p + "final_layer_norm"), D, 4 * D, p + "fc1"), "gelu")
        x = g.op("Add", [x, g.linear(h, 4 * D, D, p + "fc2", g2=2.3)])
    g.out(g.layernorm(x, D, "layer_norm"), "last_hidden_state", [N(g), s, D])
