"""YOLOv8n as in ultralytics' yolov8.yaml."""
import numpy as np
from onnx import TensorProto, helper

from networks.builder import I64
from networks.registry import N, model


@model("yolov8n", 3157200, 4.37e9, "cnn", nms=False)     # published: 3.2 M (unfused 3,157,200), 8.7 GFLOPs
@model("yolov8n_nms", 3157200, 4.37e9, "detect", nms=True)
def yolov8n(g, nms, nc=80, size=640):
    e = 1e-3
    first = [True]

    def cv(x, ci, co, k, s, n, sc=1.0):
        g2 = 1.0 if first[0] else 2.8
        first[0] = False
        return g.conv(x, ci, co, k, s, name=n + ".conv", bn=n + ".bn", act="silu", eps=e, g2=g2, scale=sc)

    def c2f(x, ci, co, n, short, p):
        c = co // 2
        y = list(g.split(cv(x, ci, 2 * c, 1, 1, p + ".cv1"), [c, c], 1))
        for i in range(n):
            z = cv(cv(y[-1], c, c, 3, 1, p + ".m.%d.cv1" % i), c, c, 3, 1, p + ".m.%d.cv2" % i)
            y.append(g.op("Add", [y[-1], z]) if short else z)
        return cv(g.op("Concat", y, axis=1), (2 + n) * c, co, 1, 1, p + ".cv2", .9)

    def up(x):
        return g.op("Resize", [x, "", g.f32([1, 1, 2, 2], "scales")], mode="nearest",
                    coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    mp = lambda v: g.op("MaxPool", [v], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2])
    cat = lambda *v: g.op("Concat", list(v), axis=1)
    m = "model.%d"
    x = g.inp("images", [N(g), 3, size, size], kind="uniform", lo=0, hi=1)
    x = cv(x, 3, 16, 3, 2, m % 0)
    x = cv(x, 16, 32, 3, 2, m % 1)
    x = c2f(x, 32, 32, 1, True, m % 2)
    x = cv(x, 32, 64, 3, 2, m % 3)
    p3 = x = c2f(x, 64, 64, 2, True, m % 4)
    x = cv(x, 64, 128, 3, 2, m % 5)
    p4 = x = c2f(x, 128, 128, 2, True, m % 6)
    x = cv(x, 128, 256, 3, 2, m % 7)
    x = c2f(x, 256, 256, 1, True, m % 8)
    x = cv(x, 256, 128, 1, 1, "model.9.cv1")
    a = mp(x); b = mp(a); c = mp(b)
    p5 = cv(cat(x, a, b, c), 512, 256, 1, 1, "model.9.cv2", .8)
    h4 = c2f(cat(up(p5), p4), 384, 128, 1, False, m % 12)
    h3 = c2f(cat(up(h4), p3), 192, 64, 1, False, m % 15)
    h4 = c2f(cat(cv(h3, 64, 64, 3, 2, m % 16), h4), 192, 128, 1, False, m % 18)
    h5 = c2f(cat(cv(h4, 128, 128, 3, 2, m % 19), p5), 384, 256, 1, False, m % 21)
    lv, c2, c3 = [], 64, 80
    bd = g.dim(x, 0, g.B)
    for i, (h, ch) in enumerate(((h3, 64), (h4, 128), (h5, 256))):
        q = "model.22.cv2.%d" % i
        bx = g.conv(cv(cv(h, ch, c2, 3, 1, q + ".0"), c2, c2, 3, 1, q + ".1"), c2, 64, 1, name=q + ".2", bias=True, g2=2.8)
        q = "model.22.cv3.%d" % i
        cl = g.conv(cv(cv(h, ch, c3, 3, 1, q + ".0"), c3, c3, 3, 1, q + ".1"), c3, nc, 1, name=q + ".2", bias=True, g2=14)
        lv.append(g.reshape(cat(bx, cl), [bd, 64 + nc, (size >> (3 + i)) ** 2]))
    A = sum((size >> (3 + i)) ** 2 for i in range(3))
    bx, cl = g.split(g.op("Concat", lv, axis=2), [64, nc], 1)
    bx = g.op("Transpose", [g.reshape(bx, [bd, 4, 16, A])], perm=[0, 2, 1, 3])
    g.params += 16
    bx = g.op("Conv", [g.op("Softmax", [bx], axis=1), g.const(np.arange(16, dtype=np.float32).reshape(1, 16, 1, 1), "model.22.dfl.conv.weight", True)],
              kernel_shape=[1, 1])
    lt, rb = g.split(g.reshape(bx, [bd, 4, A]), [2, 2], 1)
    an, st = [], []
    for i in range(3):
        n = size >> (3 + i)
        yy, xx = np.meshgrid(np.arange(n) + .5, np.arange(n) + .5, indexing="ij")
        an.append(np.stack([xx.ravel(), yy.ravel()])); st.append(np.full((1, n * n), 8 << i))
    an = g.const(np.concatenate(an, 1)[None].astype(np.float32), "anchors")
    st = g.const(np.concatenate(st, 1).astype(np.float32), "strides")
    x1, x2 = g.op("Sub", [an, lt]), g.op("Add", [an, rb])
    ctr = g.op("Div", [g.op("Add", [x1, x2]), g.f(2)])
    box = g.op("Mul", [cat(ctr, g.op("Sub", [x2, x1])), st])
    sc = g.op("Sigmoid", [cl])
    if not nms:
        g.out(cat(box, sc), "output0", [N(g), 4 + nc, A])
        return
    boxes = g.op("Transpose", [box], perm=[0, 2, 1])
    if g.o.dtype != "float32":                  # NonMaxSuppression takes float32 only
        boxes, sc = (g.op("Cast", [v], to=TensorProto.FLOAT) for v in (boxes, sc))
    sel = g.op("NonMaxSuppression", [boxes, sc, g.i64(100), g.f32([.45], "iou"), g.f32([.8], "thr")], center_point_box=1)
    g.out(boxes, "boxes", [N(g), A, 4], TensorProto.FLOAT)
    g.out(sc, "scores", [N(g), nc, A], TensorProto.FLOAT)
    g.op("Identity", [sel], out="selected")
    g.outputs.append(helper.make_tensor_value_info("selected", I64, ["num_selected", 3]))
