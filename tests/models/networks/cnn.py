"""Image classification and segmentation, as torchvision has them."""
from networks.registry import N, model


@model("resnet18", 11689512, 1.814e9, "cnn small", block="basic", layers=(2, 2, 2, 2))
@model("resnet50", 25557032, 4.089e9, "cnn", block="bottleneck", layers=(3, 4, 6, 3))
def resnet(g, block, layers, classes=1000):
    x = g.inp("input", [N(g), 3, 224, 224])
    x = g.conv(x, 3, 64, 7, 2, name="conv1", bn="bn1", act="relu", g2=1)
    x = g.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    cin, exp = 64, 1 if block == "basic" else 4
    for li, n in enumerate(layers):
        w = 64 << li
        for b in range(n):
            s, p, idn = (2 if li and not b else 1), "layer%d.%d." % (li + 1, b), x
            if block == "basic":
                y = g.conv(x, cin, w, 3, s, name=p + "conv1", bn=p + "bn1", act="relu")
                y = g.conv(y, w, w, 3, name=p + "conv2", bn=p + "bn2", scale=.5)
            else:
                y = g.conv(x, cin, w, 1, name=p + "conv1", bn=p + "bn1", act="relu")
                y = g.conv(y, w, w, 3, s, name=p + "conv2", bn=p + "bn2", act="relu")
                y = g.conv(y, w, w * exp, 1, name=p + "conv3", bn=p + "bn3", scale=.5)
            if s != 1 or cin != w * exp:
                idn = g.conv(x, cin, w * exp, 1, s, name=p + "downsample.0", bn=p + "downsample.1", g2=1.5)
            x = g.op("Relu", [g.op("Add", [y, idn])])
            cin = w * exp
    g.out(g.gemm(g.gap_flat(x), cin, classes, "fc", g2=1), "output", [N(g), classes])


def mkdiv(v, d=8):
    n = max(d, int(v + d / 2) // d * d)
    return n + d if n < .9 * v else n


@model("mobilenet_v2", 3504872, 300.8e6, "cnn small")
def mobilenet_v2(g):
    x = g.inp("input", [N(g), 3, 224, 224])
    x = g.conv(x, 3, 32, 3, 2, name="features.0.0", bn="features.0.1", act="relu6", g2=1)
    cin, i = 32, 1
    for t, c, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for b in range(n):
            st, p, h, y, j = (s if b == 0 else 1), "features.%d.conv." % i, cin * t, x, 0
            if t != 1:
                y = g.conv(y, cin, h, 1, name=p + "0.0", bn=p + "0.1", act="relu6", g2=1)
                j = 1
            y = g.conv(y, h, h, 3, st, groups=h, name=p + "%d.0" % j, bn=p + "%d.1" % j, act="relu6")
            res = st == 1 and cin == c
            y = g.conv(y, h, c, 1, name=p + str(j + 1), bn=p + str(j + 2), scale=.6 if res else 1.0)
            x = g.op("Add", [x, y]) if res else y
            cin, i = c, i + 1
    x = g.conv(x, cin, 1280, 1, name="features.18.0", bn="features.18.1", act="relu6", g2=1)
    g.out(g.gemm(g.gap_flat(x), 1280, 1000, "classifier.1"), "output", [N(g), 1000])


def se(g, x, c, sq, p, a1, a2):
    y = g.op("GlobalAveragePool", [x])
    y = g.conv(y, c, sq, 1, name=p + "fc1", bias=True, act=a1, g2=4)
    y = g.conv(y, sq, c, 1, name=p + "fc2", bias=True, act=a2)
    return g.op("Mul", [y, x])


@model("mobilenet_v3_small", 2542856, 56.5e6, "cnn small")
def mobilenet_v3_small(g):
    x = g.inp("input", [N(g), 3, 224, 224])
    e = 1e-3
    x = g.conv(x, 3, 16, 3, 2, name="features.0.0", bn="features.0.1", act="hswish", eps=e, g2=1)
    cfg = ((16, 3, 16, 16, 1, "relu", 2), (16, 3, 72, 24, 0, "relu", 2), (24, 3, 88, 24, 0, "relu", 1),
           (24, 5, 96, 40, 1, "hswish", 2), (40, 5, 240, 40, 1, "hswish", 1), (40, 5, 240, 40, 1, "hswish", 1),
           (40, 5, 120, 48, 1, "hswish", 1), (48, 5, 144, 48, 1, "hswish", 1), (48, 5, 288, 96, 1, "hswish", 2),
           (96, 5, 576, 96, 1, "hswish", 1), (96, 5, 576, 96, 1, "hswish", 1))
    for i, (ci, k, h, co, use_se, a, s) in enumerate(cfg, 1):
        p, y, j = "features.%d.block." % i, x, 0
        if h != ci:
            y = g.conv(y, ci, h, 1, name=p + "0.0", bn=p + "0.1", act=a, eps=e, g2=3 if i == 1 else 1)
            j = 1
        y = g.conv(y, h, h, k, s, groups=h, name=p + "%d.0" % j, bn=p + "%d.1" % j, act=a, eps=e, g2=2 if a == "relu" else 2.8)
        if use_se:
            j += 1
            y = se(g, y, h, mkdiv(h // 4), p + "%d." % j, "relu", "hsigmoid")
        res = s == 1 and ci == co
        y = g.conv(y, h, co, 1, name=p + "%d.0" % (j + 1), bn=p + "%d.1" % (j + 1), eps=e,
                   g2=(2 if a == "relu" else 2.8) * (3.5 if use_se else 1), scale=.6 if res else 1.0)
        x = g.op("Add", [y, x]) if res else y
    x = g.conv(x, 96, 576, 1, name="features.12.0", bn="features.12.1", act="hswish", eps=e, g2=1)
    x = g.gemm(g.gap_flat(x), 576, 1024, "classifier.0", g2=4, act="hswish")
    g.out(g.gemm(x, 1024, 1000, "classifier.3", g2=3), "output", [N(g), 1000])


@model("efficientnet_b0", 5288548, 385.8e6, "cnn")
def efficientnet_b0(g):
    x = g.inp("input", [N(g), 3, 224, 224])
    x = g.conv(x, 3, 32, 3, 2, name="features.0.0", bn="features.0.1", act="silu", g2=1)
    cin = 32
    for si, (t, k, s, co, n) in enumerate(((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
                                           (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)), 1):
        for b in range(n):
            st, h, p, y, j = (s if b == 0 else 1), cin * t, "features.%d.%d.block." % (si, b), x, 0
            if t != 1:
                y = g.conv(y, cin, h, 1, name=p + "0.0", bn=p + "0.1", act="silu", g2=1)
                j = 1
            y = g.conv(y, h, h, k, st, groups=h, name=p + "%d.0" % j, bn=p + "%d.1" % j, act="silu", g2=2.8)
            y = se(g, y, h, max(1, cin // 4), p + "%d." % (j + 1), "silu", "sigmoid")
            res = st == 1 and cin == co
            y = g.conv(y, h, co, 1, name=p + "%d.0" % (j + 2), bn=p + "%d.1" % (j + 2), g2=2.8 * 3.1, scale=.5 if res else 1.)
            x = g.op("Add", [y, x]) if res else y
            cin = co
    x = g.conv(x, cin, 1280, 1, name="features.8.0", bn="features.8.1", act="silu", g2=1)
    g.out(g.gemm(g.gap_flat(x), 1280, 1000, "classifier.1", g2=3), "output", [N(g), 1000])


@model("squeezenet1_1", 1235496, 349.2e6, "cnn small")
def squeezenet(g):
    mp = lambda v: g.op("MaxPool", [v], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    x = g.inp("input", [N(g), 3, 224, 224])
    x = mp(g.conv(x, 3, 64, 3, 2, 0, name="features.0", bias=True, act="relu", g2=1))
    for i, (ci, s, e) in ((3, (64, 16, 64)), (4, (128, 16, 64)), (0, (0, 0, 0)), (6, (128, 32, 128)), (7, (256, 32, 128)), (0, (0, 0, 0)),
                          (9, (256, 48, 192)), (10, (384, 48, 192)), (11, (384, 64, 256)), (12, (512, 64, 256))):
        if not i:
            x = mp(x)
            continue
        p = "features.%d." % i
        q = g.conv(x, ci, s, 1, name=p + "squeeze", bias=True, act="relu", g2=1.7)
        x = g.op("Concat", [g.conv(q, s, e, 1, name=p + "expand1x1", bias=True, act="relu"),
                            g.conv(q, s, e, 3, name=p + "expand3x3", bias=True, act="relu")], axis=1)
    x = g.conv(x, 512, 1000, 1, name="classifier.1", bias=True, act="relu")
    g.out(g.gap_flat(x), "output", [N(g), 1000])


@model("vgg16", 138357544, 15.470e9, "big")
def vgg16(g):
    x, cin, i = g.inp("input", [N(g), 3, 224, 224]), 3, 0
    for c in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if c:
            x = g.conv(x, cin, c, 3, name="features.%d" % i, bias=True, act="relu", g2=1 if i == 0 else 1.6)
            cin, i = c, i + 2
        else:
            x = g.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
            i += 1
    x = g.op("Flatten", [x], axis=1)
    x = g.gemm(x, 25088, 4096, "classifier.0", g2=2, act="relu")
    x = g.gemm(x, 4096, 4096, "classifier.3", g2=2, act="relu")
    g.out(g.gemm(x, 4096, 1000, "classifier.6", g2=1), "output", [N(g), 1000])


@model("unet", 7763041, None, "cnn small")     # mateuszbuda/brain-segmentation-pytorch, init_features=32
def unet(g, f=32, size=256):
    def block(x, ci, co, n):
        for j in (1, 2):
            x = g.conv(x, ci if j == 1 else co, co, 3, name="%s.conv%d" % (n, j), bn="%s.norm%d" % (n, j), act="relu",
                       g2=1 if (n == "encoder1" and j == 1) else 2)
        return x
    x = g.inp("input", [N(g), 3, size, size])
    skips, ci = [], 3
    for i in range(4):
        x = block(x, ci, f << i, "encoder%d" % (i + 1))
        skips.append(x)
        ci = f << i
        x = g.op("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = block(x, ci, f << 4, "bottleneck")
    for i in (3, 2, 1, 0):
        c = f << i
        n = "upconv%d" % (i + 1)
        w = g.weight(n + ".weight", (2 * c, c, 2, 2), 2 * c, 2.0)
        g.params += w.size + c
        x = g.op("ConvTranspose", [x, g.const(w, n + ".weight", True), g.const(g.randn(n + ".bias", (c,), .05), n + ".bias", True)],
                 kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], group=1, dilations=[1, 1])
        x = block(g.op("Concat", [x, skips[i]], axis=1), 2 * c, c, "decoder%d" % (i + 1))
    g.out(g.op("Sigmoid", [g.conv(x, f, 1, 1, name="conv", bias=True)]), "output", [N(g), 1, size, size])
