#include "dlc/program/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/program/layout_kernel.h"
#include "dlc/kernel/access.h"
#include "dlc/kernel/normal_form.h"

namespace dlc {

namespace {

using detail::Blocked;

constexpr size_t kChannel = 1;  // of n, c, spatial...
constexpr int64_t kMaxHalo = 16;

struct Use {
  size_t call = 0;
  int tensor = -1;  // of the call's kernel
  bool writes = false;
};

class Assignment {
 public:
  Assignment(Program& p, const LayoutOptions& o) : p_(p), o_(o) {}

  Result<int> run() {
    one_kernel_per_call();
    collect_uses();
    for (size_t b = 0; b < p_.buffers.size(); ++b) consider(static_cast<int>(b));
    if (layouts_.empty()) {
      share_kernels(p_);
      return 0;
    }
    for (size_t c = 0; c < p_.calls.size(); ++c) constants_of(c);
    for (size_t c = 0; c < p_.calls.size(); ++c) DLC_CHECK(rewrite_call(c));
    for (auto& [b, layout] : layouts_) {
      auto& type = p_.buffers[static_cast<size_t>(b)].type;
      type.shape = detail::physical_shape(type.shape, layout);
    }
    DLC_CHECK(relay_constants());
    share_kernels(p_);
    DLC_CHECK(plan_memory(p_));
    DLC_CHECK(verify(p_));
    return static_cast<int>(layouts_.size());
  }

 private:
  // A kernel that several calls share is copied, each with its call's nodes: their buffers may get different layouts.
  void one_kernel_per_call() {
    std::vector<std::vector<size_t>> calls(p_.kernels.size());
    for (size_t c = 0; c < p_.calls.size(); ++c) calls[static_cast<size_t>(p_.calls[c].kernel)].push_back(c);
    for (size_t shared = 0; shared < calls.size(); ++shared) {
      if (calls[shared].size() < 2) continue;
      const auto all = std::exchange(p_.kernels[shared].locations, {});
      for (const size_t i : calls[shared]) {
        Call& c = p_.calls[i];
        if (i != calls[shared].front()) {
          Kernel k = p_.kernels[shared];
          k.name = fmt::format("{}_{}", k.name, p_.kernels.size());
          c.kernel = static_cast<int>(p_.kernels.size());
          p_.kernels.push_back(std::move(k));
        }
        p_.kernels[static_cast<size_t>(c.kernel)].locations = c.locations.empty() ? all : c.locations;
      }
    }
  }

  void collect_uses() {
    uses_.resize(p_.buffers.size());
    aliased_.assign(p_.buffers.size(), false);
    for (size_t c = 0; c < p_.calls.size(); ++c) {
      const Kernel& k = kernel(c);
      size_t i = 0;
      for (size_t t = 0; t < k.tensors.size(); ++t) {
        if (k.tensors[t].role == Role::temp || k.tensors[t].view) continue;
        uses_[static_cast<size_t>(p_.calls[c].buffers[i++])].push_back(
            {c, static_cast<int>(t), k.tensors[t].role == Role::output});
      }
    }
    for (size_t b = 0; b < p_.buffers.size(); ++b)
      if (const auto& a = p_.buffers[b].alias) aliased_[b] = aliased_[static_cast<size_t>(a->base)] = true;
  }

  Kernel& kernel(size_t call) { return p_.kernels[static_cast<size_t>(p_.calls[call].kernel)]; }

  void consider(int b) {
    const auto& buffer = p_.buffers[static_cast<size_t>(b)];
    const auto& uses = uses_[static_cast<size_t>(b)];
    const auto& shape = buffer.type.shape;
    if (buffer.kind != BufferKind::temp || aliased_[static_cast<size_t>(b)] || shape.size() < 3) return;
    const auto channels = shape[kChannel].constant();
    if (!channels) return;
    Blocked layout;
    layout.channel = kChannel;
    // Half a vector is better than none: a multiple of 8 channels gets blocks of 8.
    layout.block = *channels % o_.block == 0 ? o_.block : o_.block / 2;
    if (layout.block < 2 || *channels % layout.block != 0) return;
    layout.lo.assign(shape.size(), 0);
    layout.hi.assign(shape.size(), 0);
    int writers = 0;
    bool worth = false;
    for (const Use& u : uses) {
      const auto demand = detail::demand_on(kernel(u.call), u.tensor, kChannel, layout.block, p_.symbols);
      if (!demand.can_split) return;
      for (size_t d = 0; d < shape.size(); ++d) {
        layout.lo[d] = std::max(layout.lo[d], demand.lo[d]);
        layout.hi[d] = std::max(layout.hi[d], demand.hi[d]);
        if (layout.lo[d] > kMaxHalo || layout.hi[d] > kMaxHalo) return;
      }
      writers += u.writes ? 1 : 0;
      const Wish wish = wish_of(u);
      if (wish == Wish::plain) return;
      worth = worth || wish == Wish::blocked;
    }
    if (writers == 1 && worth) layouts_.emplace(b, std::move(layout));
  }

  // A sum of products with a constant that has a window ([o, c, k...]) is what blocking is for. Other products of
  // tensors (matrix products, attention) want their operands as they are.
  enum class Wish : uint8_t { none, blocked, plain };
  Wish wish_of(const Use& u) {
    const Kernel& k = kernel(u.call);
    Wish wish = Wish::none;
    walk(k.body, [&](const Stmt& s) {
      if (s.kind != Stmt::Kind::assign) return;
      walk(s.value, [&](const ValNode& n) {
        if (n.kind != ValKind::reduce) return;
        std::set<int> tensors;
        bool window = false;
        walk(n.args[0], [&](const ValNode& r) {
          if (r.kind != ValKind::read) return;
          const auto& t = k.tensors[static_cast<size_t>(r.tensor)];
          tensors.insert(r.tensor);
          window = window || (t.role == Role::constant && t.shape.size() >= 3);
        });
        if (window)
          wish = Wish::blocked;
        else if (tensors.size() > 1 && wish == Wish::none)
          wish = Wish::plain;
      });
    });
    return wish;
  }

  // Constants whose only access runs along one split channel loop: per-channel vectors stay (their inside is contiguous
  // already), depthwise weights get the inside of the block last.
  void constants_of(size_t c) {
    const Kernel& k = kernel(c);
    size_t i = 0;
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      if (k.tensors[t].role == Role::temp || k.tensors[t].view) continue;
      const int b = p_.calls[c].buffers[i++];
      const auto& buffer = p_.buffers[static_cast<size_t>(b)];
      if (buffer.kind != BufferKind::constant || buffer.alias || aliased_[static_cast<size_t>(b)]) continue;
      if (uses_[static_cast<size_t>(b)].size() != 1 || buffer.type.shape.size() < 3) continue;
      if (!is_depthwise(k, static_cast<int>(t))) continue;
      Blocked layout;
      layout.channel = 0;
      const auto channels = buffer.type.shape[0].constant();
      layout.block = channels && *channels % o_.block == 0 ? o_.block : o_.block / 2;
      if (layout.block < 2 || !detail::demand_on(k, static_cast<int>(t), 0, layout.block, p_.symbols).can_split)
        continue;
      layout.lo.assign(buffer.type.shape.size(), 0);
      layout.hi = layout.lo;
      constants_.emplace(b, std::move(layout));
    }
  }

  // Read with one loop of the result that also indexes a blocked tensor's channels, and no loop of its own besides the
  // window: the second dim is 1.
  static bool is_depthwise(const Kernel& k, int tensor) {
    const auto& shape = k.tensors[static_cast<size_t>(tensor)].shape;
    return shape[1].is(1);
  }

  Result<> rewrite_call(size_t c) {
    std::map<int, Blocked> of_tensor;
    Kernel& k = kernel(c);
    size_t i = 0;
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      if (k.tensors[t].role == Role::temp || k.tensors[t].view) continue;
      const int b = p_.calls[c].buffers[i++];
      if (const auto l = layouts_.find(b); l != layouts_.end()) of_tensor.emplace(static_cast<int>(t), l->second);
      if (const auto l = constants_.find(b); l != constants_.end()) of_tensor.emplace(static_cast<int>(t), l->second);
    }
    if (of_tensor.empty()) return {};
    auto rewritten = detail::apply_layouts(k, of_tensor, p_.symbols);
    if (!rewritten) {
      rewritten.error().diagnostics.front().message += fmt::format(" (laying out @{})", k.name);
      return std::unexpected(std::move(rewritten).error());
    }
    k = std::move(*rewritten);
    return {};
  }

  // The elements of re-laid constants, moved once now.
  Result<> relay_constants() {
    for (const auto& [b, layout] : constants_) {
      auto& buffer = p_.buffers[static_cast<size_t>(b)];
      const auto w = std::ranges::find(p_.weights, buffer.name, [](const auto& entry) { return entry.first; });
      if (w == p_.weights.end()) return fail({}, fmt::format("constant {} has no value", buffer.name));
      const Tensor from = w->second;
      int64_t inner = 1;  // elements per channel
      for (size_t d = 1; d < from.shape().size(); ++d) inner *= from.shape()[d];
      std::vector<int64_t> shape = from.shape();
      shape[0] /= layout.block;
      shape.push_back(layout.block);
      DLC_TRY(Tensor to, Tensor::make(from.dtype(), shape));
      const auto bytes = static_cast<size_t>(from.dtype().bytes());
      std::byte* out = to.mutable_bytes();
      for (int64_t o = 0; o < from.shape()[0]; ++o)
        for (int64_t e = 0; e < inner; ++e) {
          const int64_t at = (o / layout.block * inner + e) * layout.block + o % layout.block;
          std::copy_n(from.bytes() + static_cast<size_t>(o * inner + e) * bytes, bytes,
                      out + static_cast<size_t>(at) * bytes);
        }
      w->second = std::move(to);
      buffer.type.shape = detail::physical_shape(buffer.type.shape, layout);
    }
    return {};
  }

  Program& p_;
  const LayoutOptions& o_;
  std::vector<std::vector<Use>> uses_;
  std::vector<bool> aliased_;
  std::map<int, Blocked> layouts_, constants_;
};

}  // namespace

Result<int> assign_layouts(Program& p, const LayoutOptions& options) { return Assignment(p, options).run(); }

}  // namespace dlc
