"""MLPerf Tiny (Keras: convolution with bias and batch norm; NHWC inputs as tf2onnx gives them)."""
from networks.registry import N, model


def nhwc(g, x):
    return g.op("Transpose", [x], perm=[0, 3, 1, 2])


@model("resnet8", 78186, 12.5e6, "tiny small")     # Keras summary 78,666 = 78,186 trainable + 480 BN statistics
def resnet8(g):
    x = nhwc(g, g.inp("input_1", [N(g), 32, 32, 3], kind="uniform", lo=0, hi=255))
    x = g.op("Div", [x, g.f(128.)])             # keeps the seeded weights in range; the trained net eats 0..255
    e, cin = 1e-3, 16
    x = g.conv(x, 3, 16, 3, name="conv2d", bias=True, bn="batch_normalization", act="relu", eps=e, g2=1)
    for i, (c, s) in enumerate(((16, 1), (32, 2), (64, 2)), 1):
        pads = [0, 0, 1, 1] if s == 2 else None
        y = g.conv(x, cin, c, 3, s, pads=pads, name="s%d.conv_a" % i, bias=True, bn="s%d.bn_a" % i, act="relu", eps=e)
        y = g.conv(y, c, c, 3, name="s%d.conv_b" % i, bias=True, bn="s%d.bn_b" % i, eps=e, scale=.6)
        if s == 2:
            x = g.conv(x, cin, c, 1, s, name="s%d.short" % i, bias=True, g2=1.5)
        x = g.op("Relu", [g.op("Add", [x, y])])
        cin = c
    x = g.op("Flatten", [g.op("AveragePool", [x], kernel_shape=[8, 8], strides=[8, 8])], axis=1)
    g.out(g.op("Softmax", [g.gemm(x, 64, 10, "dense")], axis=-1), "dense", [N(g), 10])


@model("ds_cnn", 23756, 2.66e6, "tiny small")       # Keras 24,908 = 23,756 trainable + 1,152 statistics
def ds_cnn(g):
    x = nhwc(g, g.inp("input_1", [N(g), 49, 10, 1]))
    e = 1e-3
    x = g.conv(x, 1, 64, (10, 4), 2, pads=[4, 1, 5, 1], name="conv2d", bias=True, bn="bn", act="relu", eps=e, g2=1)
    for i in range(4):
        x = g.conv(x, 64, 64, 3, groups=64, name="dw%d" % i, bias=True, bn="dwbn%d" % i, act="relu", eps=e)
        x = g.conv(x, 64, 64, 1, name="pw%d" % i, bias=True, bn="pwbn%d" % i, act="relu", eps=e)
    x = g.op("Flatten", [g.op("AveragePool", [x], kernel_shape=[25, 5], strides=[25, 5])], axis=1)
    g.out(g.op("Softmax", [g.gemm(x, 64, 12, "dense")], axis=-1), "dense", [N(g), 12])


@model("mobilenet_v1_025", 216322, 7.49e6, "tiny small")   # VWW 96x96; Keras 221,794 = 216,322 trainable + 5,472 statistics
def mobilenet_v1(g, a=.25, size=96, classes=2):
    x = nhwc(g, g.inp("input_1", [N(g), size, size, 3], kind="uniform", lo=0, hi=1))
    e, cin = 1e-3, int(32 * a)
    x = g.conv(x, 3, cin, 3, 2, pads=[0, 0, 1, 1], name="conv2d", bias=True, bn="bn", act="relu", eps=e, g2=1.5)
    for i, (c, s) in enumerate(((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)) + ((512, 1),) * 5 + ((1024, 2), (1024, 1))):
        c = int(c * a)
        x = g.conv(x, cin, cin, 3, s, pads=[0, 0, 1, 1] if s == 2 else None, groups=cin, name="dw%d" % i, bias=True, bn="dwbn%d" % i, act="relu", eps=e)
        x = g.conv(x, cin, c, 1, name="pw%d" % i, bias=True, bn="pwbn%d" % i, act="relu", eps=e)
        cin = c
    x = g.op("Flatten", [g.op("AveragePool", [x], kernel_shape=[3, 3], strides=[3, 3])], axis=1)
    g.out(g.op("Softmax", [g.gemm(x, cin, classes, "dense")], axis=-1), "dense", [N(g), classes])


@model("autoencoder", 267928, 264192, "tiny small")  # Keras 269,992 = 267,928 trainable + 2,064 statistics
def autoencoder(g):
    d = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)
    x = g.inp("input_1", [N(g), 640])
    for i, (a, b) in enumerate(zip(d, d[1:])):
        x = g.gemm(x, a, b, "dense%d" % i, g2=1 if i == 0 else 2, act="relu", bn="bn%d" % i)
    g.out(g.gemm(x, 128, 640, "dense9", g2=2), "output", [N(g), 640])
