#!/bin/sh
# One verilated model of nx16: build_model.sh CONFIG OUT.so [--trace | --coverage]; simulators/port has the rest.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../port/build_model.sh" nx_top "$here/rtl/nx.f" "$@"
