// Small questions about a program's buffers that several passes ask.
#pragma once

#include <map>
#include <vector>

#include "dlc/program/program.h"

namespace dlc::detail {

// The program buffer of every tensor of the call's kernel; -1 for temporaries and views, which have none.
std::vector<int> buffers_of(const Kernel& k, const Call& call);

// The buffer whose storage b lies in, through aliases of both kinds.
int root_of(const Program& p, int b);
// The buffer that b is a part of as a value: aliases that replace are not followed.
int family_of(const Program& p, int b);

// Whether the call writes b, or something that b lies in or that lies in b.
bool writes(const Program& p, const Call& call, int b);

Expr bytes_of(const TensorType& t);
// Bytes from the start of b's family to b.
Expr offset_in_family(const Program& p, int b);

// One use of a family by a call.
struct Use {
  size_t call = 0;
  int buffer = -1, tensor = -1;
  bool writes = false;
};
// By family, in the order of the calls. What lies `over` something else is a family of its own and changes none.
using Uses = std::map<int, std::vector<Use>>;
Uses uses_of(const Program& p);

// `result` is `over` an operand: nothing of that operand is read or written after result's first call, and that call
// reads it element by element.
Result<> check_replacement(const Program& p, const Uses& uses, int result);

// A kernel that may be changed for this call alone.
Kernel& own_kernel(Program& p, Call& call);
// Tensors that nothing in the call's own kernel accesses go, and so do their buffers in the call; a call without
// statements is gone (kernel -1).
void drop_unused(Program& p, Call& call);

// Every buffer after the one it lies in, otherwise as they were; buffers that nothing uses go.
void order_buffers(Program& p);

}  // namespace dlc::detail
