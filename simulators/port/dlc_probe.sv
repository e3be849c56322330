// What one queue of a machine shows to simulators/port: when an instruction starts and retires, and every word that is
// written. `memory` is the M_NAME of the description, `at` counts its words; stores to DRAM are seen on the bus instead.
// The module's ports are all there is to it. An RTL has its instances under `ifdef DLC_PROBE, that of queue i of the
// description as `core.probe_i` of the top.
/* verilator lint_off UNUSEDSIGNAL */
module dlc_probe #(parameter int BITS = 64) (
    input  logic start /*verilator public_flat_rd*/, retire /*verilator public_flat_rd*/,
    input  logic [31:0] index /*verilator public_flat_rd*/,          // of the instruction that retires
    input  logic we /*verilator public_flat_rd*/,
    input  logic [7:0] memory /*verilator public_flat_rd*/, input logic [31:0] at /*verilator public_flat_rd*/,
    input  logic [BITS-1:0] data /*verilator public_flat_rd*/);
endmodule
/* verilator lint_on UNUSEDSIGNAL */
