#!/bin/sh
# One verilated model of os8: build_model.sh CONFIG OUT.so [--trace | --coverage]; simulators/port has the rest.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../port/build_model.sh" os_top "$here/rtl/os.f" "$@"
