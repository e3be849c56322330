"""Recommender, recurrent networks, a perceptron."""
import math

import numpy as np

from networks.builder import I64
from networks.registry import N, model


@model("dlrm_small", None, None, "small other")   # dlrm_s_pytorch Kaggle MLPs (475,985 params) + 26 tables of 1000 x 16
def dlrm(g, rows=1000, d=16, tables=26, bag=4):
    x = g.inp("dense", [N(g), 13], kind="uniform", lo=0, hi=1)
    b = g.dim(x, 0, g.B)
    idx = [g.inp("sparse_%d" % i, [N(g), bag], I64, "randint", 0, rows) for i in range(tables)]
    for i, (ci, co) in enumerate(((13, 512), (512, 256), (256, 64), (64, d))):
        x = g.gemm(x, ci, co, "bot_l.%d" % (2 * i), g2=2, act="relu")
    es = []
    for i in range(tables):
        e = g.embedding(idx[i], rows, d, "emb_l.%d" % i, .5)
        es.append(g.op("Unsqueeze", [g.op("ReduceSum", [e, g.i64(1)], keepdims=0), g.i64(1)]))
    T = g.op("Concat", [g.op("Unsqueeze", [x, g.i64(1)])] + es, axis=1)
    Z = g.op("MatMul", [T, g.op("Transpose", [T], perm=[0, 2, 1])])
    n = tables + 1
    li = [i * n + j for i in range(n) for j in range(i)]
    Z = g.op("Gather", [g.reshape(Z, [b, n * n]), g.const(np.array(li, np.int64), "tril")], axis=1)
    x = g.op("Concat", [x, Z], axis=1)
    x = g.gemm(x, 16 + len(li), 512, "top_l.0", g2=.3, act="relu")
    x = g.gemm(x, 512, 256, "top_l.2", g2=2, act="relu")
    g.out(g.gemm(x, 256, 1, "top_l.4", act="sigmoid"), "output", [N(g), 1])


@model("lstm_classifier", None, None, "small other rnn", cell="LSTM")
@model("gru_classifier", None, None, "small other rnn", cell="GRU")
def rnn(g, cell, vocab=10000, E=128, Hd=128, layers=2, classes=4):
    S = g.o.seq or 32
    ids = g.inp("input_ids", [N(g), ("S", S)], I64, "randint", 0, vocab)
    b, s = g.dim(ids, 0, g.B), g.dim(ids, 1, S)
    x = g.op("Transpose", [g.embedding(ids, vocab, E, "embedding")], perm=[1, 0, 2])
    G4 = 4 if cell == "LSTM" else 3
    for l in range(layers):
        I = E if l == 0 else 2 * Hd
        u = lambda n, sh: g.const((g.rng(n).uniform(-1, 1, sh) * 2.0 / math.sqrt(Hd)).astype(np.float32), n, True)
        W, R, B = u("rnn.W%d" % l, (2, G4 * Hd, I)), u("rnn.R%d" % l, (2, G4 * Hd, Hd)), u("rnn.B%d" % l, (2, 2 * G4 * Hd))
        g.params += 2 * G4 * Hd * (I + Hd + 2)
        h0 = g.op("Expand", [g.f(0.0), g.shape_of([2, b, Hd])]) if g.dyn else g.const(np.zeros((2, g.B, Hd), np.float32), "h0")
        ins = [x, W, R, B, "", h0] + ([h0] if cell == "LSTM" else [])
        kw = {} if cell == "LSTM" else {"linear_before_reset": 1}
        o = g.op(cell, ins, n=3 if cell == "LSTM" else 2, hidden_size=Hd, direction="bidirectional", **kw)
        x = g.reshape(g.op("Transpose", [o[0]], perm=[0, 2, 1, 3]), [s, b, 2 * Hd])
    h = g.reshape(g.op("Transpose", [o[1]], perm=[1, 0, 2]), [b, 2 * Hd])
    g.out(g.op("LogSoftmax", [g.gemm(h, 2 * Hd, classes, "fc", g2=8)], axis=-1), "output", [N(g), classes])


@model("mlp", 535818, 535040, "small other")
def mlp(g, dims=(784, 512, 256, 10)):
    x = g.inp("input", [N(g), dims[0]])
    for i, (a, b) in enumerate(zip(dims, dims[1:])):
        x = g.gemm(x, a, b, "fc%d" % (i + 1), g2=1 if i == 0 else 2, act="relu" if i < len(dims) - 2 else None)
    g.out(x, "output", [N(g), dims[-1]])
