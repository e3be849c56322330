#!/usr/bin/env python3
"""Makes tests in ONNX's layout from ONNX's own node tests: each at every opset whose schema of the op takes it, with every
attribute that has a default given, and with its f32 inputs in every other type. Results are onnxruntime's; what it does not
run is left out. Some 8,000 tests; `dlc conform --suite OUT` runs them.

    python3 tests/conformance/versions.py NODE_TESTS OUT     # NODE_TESTS: onnx/backend/test/data/node of onnx 1.22
"""
import collections
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

NEWEST = 27
TYPES = (np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64, np.uint64, bool)
LEFT_OUT = ("Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike")  # random
seen = set()


def schemas():
    """By op and by version."""
    found = collections.defaultdict(dict)
    for s in onnx.defs.get_all_schemas_with_history():
        if s.domain == "" and s.since_version <= NEWEST and not s.deprecated:
            found[s.name][s.since_version] = s
    return found


def templates(folder):
    """Node, names of its inputs and inputs of each test of one node over tensors of numbers; a few for each op."""
    found = collections.defaultdict(list)
    for test in sorted(folder.glob("test_*")):
        model = onnx.load(test / "model.onnx")
        graph = model.graph
        if len(graph.node) != 1 or graph.initializer or graph.node[0].domain not in ("", "ai.onnx"):
            continue
        files = [test / "test_data_set_0" / f"input_{i}.pb" for i in range(len(graph.input))]
        if all(i.type.HasField("tensor_type") for i in graph.input) and all(f.exists() for f in files):
            inputs = [numpy_helper.to_array(onnx.load_tensor(f)) for f in files]
            if all(a.dtype != object for a in inputs):
                found[graph.node[0].op_type].append((test.name[5:], graph.node[0], [i.name for i in graph.input], inputs))
    return {op: tests if len(tests) <= 5 else tests[:12:len(tests) // 5] for op, tests in found.items()}


def info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def write(out, name, node, names, inputs, opset):
    results = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    graph = helper.make_graph([node], name, [info(n, a) for n, a in zip(names, inputs)], results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    text = model.SerializeToString()
    if text in seen:
        return
    seen.add(text)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        wanted = onnxruntime.InferenceSession(text, options).run(None, dict(zip(names, inputs)))
    except Exception:
        return
    if any(not isinstance(a, np.ndarray) or a.dtype == object for a in wanted):
        return
    for o, a in zip(model.graph.output, wanted):
        o.CopyFrom(info(o.name, a))
    data = out / f"test_{name}" / "test_data_set_0"
    data.mkdir(parents=True)
    onnx.save(model, data.parent / "model.onnx")
    for kind, arrays in (("input", inputs), ("output", wanted)):
        for i, a in enumerate(arrays):
            (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(a).SerializeToString())


def variants(out, versions, name, node, names, inputs):
    for version, schema in sorted(versions.items()):
        later = [v for v in versions if v > version]
        opset = max(version, 7)
        if len(node.input) > schema.max_input or (later and min(later) <= opset):
            continue
        plain = onnx.NodeProto()
        plain.CopyFrom(node)
        del plain.attribute[:]
        plain.attribute.extend(a for a in node.attribute if a.name in schema.attributes)
        write(out, f"{name}_v{opset}", plain, names, inputs, opset)
        given = {a.name for a in plain.attribute}
        for attribute in schema.attributes.values():
            if attribute.name not in given and attribute.default_value.type:
                more = onnx.NodeProto()
                more.CopyFrom(plain)
                more.attribute.append(attribute.default_value)
                write(out, f"{name}_v{opset}_{attribute.name}", more, names, inputs, opset)
        if any(a.dtype == np.float32 for a in inputs):
            for t in TYPES:
                with np.errstate(all="ignore"):
                    cast = [a.astype(t) if a.dtype == np.float32 else a for a in inputs]
                write(out, f"{name}_v{opset}_{np.dtype(t).name}", plain, names, cast, opset)


if __name__ == "__main__":
    onnxruntime.set_default_logger_severity(4)
    folder, out = map(pathlib.Path, sys.argv[1:3])
    known = schemas()
    for op, tests in sorted(templates(folder).items()):
        if op in known and op not in LEFT_OUT:
            for test in tests:
                variants(out, known[op], *test)
    print(len(list(out.iterdir())), "tests")
