#!/usr/bin/env python3
"""Trains the project's own network on Fashion-MNIST and writes it as float and int8 QDQ ONNX.

    apt-get install dataset-fashion-mnist python3-torch python3-onnx    # Debian 12
    /usr/bin/python3 -m venv --system-site-packages ../.venv
    ../.venv/bin/pip install onnxruntime                                # for the calibration of the QDQ model
    ../.venv/bin/python train.py                                        # about 3 minutes on two cores

Writes fashion_float.onnx, fashion_int8.onnx and accuracy.json beside itself. One of each op that a small CNN needs:
a stem on one channel, a max pool, strided and plain convolutions, a residual block with a depthwise convolution, a global
average pool and a fully connected layer. Batch norms are folded before the export.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import dataset

HERE = pathlib.Path(__file__).resolve().parent


def conv(cin, cout, k, stride=1, groups=1):
    return nn.Sequential(nn.Conv2d(cin, cout, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(cout))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.conv2 = conv(1, 16, 3), conv(16, 32, 3)
        self.depthwise, self.pointwise = conv(32, 32, 3, groups=32), conv(32, 32, 1)
        self.conv3, self.fc = conv(32, 64, 3, stride=2), nn.Linear(64, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.stem(x)), 2)
        x = torch.relu(self.conv2(x))
        x = torch.relu(x + self.pointwise(torch.relu(self.depthwise(x))))
        x = torch.relu(self.conv3(x))
        return self.fc(x.mean((2, 3)))


def train(epochs):
    torch.manual_seed(1)
    x, y = (torch.from_numpy(a) for a in dataset.load("train"))
    net = Net()
    steps = epochs * (len(x) // 128)
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, steps)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        for i in range(0, len(x) - 127, 128):
            batch = order[i:i + 128]
            images = x[batch].flip(3) if torch.rand(()) < 0.5 else x[batch]
            loss = nn.functional.cross_entropy(net(images), y[batch], label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            schedule.step()
        print(f"epoch {epoch + 1}/{epochs}: loss {loss.item():.3f}", flush=True)
    return net.eval()


def folded(block):
    c, b = block
    scale = b.weight / torch.sqrt(b.running_var + b.eps)
    return ((c.weight * scale[:, None, None, None]).detach().numpy(), (b.bias - b.running_mean * scale).detach().numpy())


def export(net, path):
    nodes, weights = [], []

    def tensor(name, a):
        weights.append(numpy_helper.from_array(np.ascontiguousarray(a, np.float32), name))
        return name

    def node(op, inputs, name, **attrs):
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attrs))
        return name

    def conv_node(x, name, block):
        w, b = folded(block)
        c = block[0]
        return node("Conv", [x, tensor(name + ".weight", w), tensor(name + ".bias", b)], name, kernel_shape=list(c.kernel_size),
                    strides=list(c.stride), pads=[c.padding[0]] * 4, group=c.groups)

    def relu(x):
        return node("Relu", [x], x + "_relu")

    x = node("MaxPool", [relu(conv_node("image", "stem", net.stem))], "pool", kernel_shape=[2, 2], strides=[2, 2])
    x = skip = relu(conv_node(x, "conv2", net.conv2))
    x = relu(conv_node(x, "depthwise", net.depthwise))
    x = relu(node("Add", [skip, conv_node(x, "pointwise", net.pointwise)], "residual"))
    x = relu(conv_node(x, "conv3", net.conv3))
    x = node("Flatten", [node("GlobalAveragePool", [x], "mean")], "flat", axis=1)
    x = node("Gemm", [x, tensor("fc.weight", net.fc.weight.detach().numpy()), tensor("fc.bias", net.fc.bias.detach().numpy())],
             "logits", transB=1)
    graph = helper.make_graph(nodes, "fashion_mnist", [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 28, 28])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="dlc fashion_mnist/train.py")
    model.ir_version = 7
    onnx.checker.check_model(model)
    onnx.save(model, path)


def quantise(source, target, python):
    calibration = HERE / "calibration.npz"
    images, _ = dataset.load("train")
    np.savez(calibration, image=images[:512])
    subprocess.run([python, HERE.parent / "make_qdq.py", source, target, "--calib-npz", calibration], check=True)
    calibration.unlink()


def accuracy(path, python):
    """Top-1 over the 10,000 test images by onnxruntime, optimisation off."""
    code = ("import sys, numpy as np, onnxruntime as ort; sys.path.insert(0, sys.argv[2]); import dataset\n"
            "o = ort.SessionOptions(); o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL\n"
            "x, y = dataset.load('t10k'); s = ort.InferenceSession(sys.argv[1], o)\n"
            "print(np.mean(np.concatenate([s.run(None, {'image': x[i:i+500]})[0].argmax(1) for i in range(0, 10000, 500)]) == y))")
    return float(subprocess.run([python, "-c", code, path, HERE], check=True, capture_output=True, text=True).stdout)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--python", default=sys.executable, help="a Python with onnx and onnxruntime, for calibration")
    o = ap.parse_args()
    float_path, int8_path = str(HERE / "fashion_float.onnx"), str(HERE / "fashion_int8.onnx")
    export(train(o.epochs), float_path)
    quantise(float_path, int8_path, o.python)
    result = {"float": accuracy(float_path, o.python), "int8_qdq": accuracy(int8_path, o.python)}
    (HERE / "accuracy.json").write_text(json.dumps(result, indent=2) + "\n")
    print(result)


if __name__ == "__main__":
    main()
