#include "core/ops/ast.h"

namespace dlc::detail {

bool operator==(const RangeVar& a, const RangeVar& b) { return a.ref == b.ref && a.extent == b.extent; }

bool operator==(const Node& a, const Node& b) {
  return a.kind == b.kind && a.integer == b.integer && a.real == b.real && a.text == b.text && a.op == b.op &&
         a.pack == b.pack && a.type == b.type && a.args == b.args && a.vars == b.vars;
}

bool operator==(const Statement& a, const Statement& b) {
  return a.kind == b.kind && a.name == b.name && a.pack == b.pack && a.target == b.target && a.type == b.type &&
         a.value == b.value && a.vars == b.vars && a.body == b.body;
}

IndexRef index_ref(const Node& n) {
  const Node& inner = n.kind == NodeKind::pack ? n.args[0] : n;
  IndexRef r;
  r.name = inner.text;
  r.pack = n.kind == NodeKind::pack;
  r.pos = inner.pos;
  if (inner.kind == NodeKind::read && !inner.args.empty()) {
    const Node& s = inner.args[0];
    r.complement = s.kind == NodeKind::complement;
    r.select = r.complement ? s.args[0].text : s.text;
    if (inner.args.size() > 1) r.keep = inner.args[1].text;
  }
  return r;
}

}  // namespace dlc::detail
