// Interning: one pool per kind of node, each split into shards with a mutex of their own.
#include <array>
#include <mutex>

#include "core/expr/node.h"

namespace dlc::detail {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}

// A set of nodes by content: open addressing, never erased. The caller says what equal means and how to make a node,
// so a lookup that finds its node allocates nothing. `make` may use other pools, never its own.
template <class Node>
class Pool {
 public:
  template <class Equal, class Make>
  const Node* intern(uint64_t hash, Equal&& equal, Make&& make) {
    Shard& shard = shards_[hash >> (64 - kShardBits)];
    const std::lock_guard lock(shard.mutex);
    if (2 * (shard.count + 1) > shard.slots.size()) grow(shard);
    size_t i = hash & (shard.slots.size() - 1);
    for (; shard.slots[i]; i = (i + 1) & (shard.slots.size() - 1)) {
      if (shard.slots[i]->hash == hash && equal(*shard.slots[i])) return shard.slots[i];
    }
    const Node* node = make();
    shard.slots[i] = node;
    ++shard.count;
    return node;
  }

 private:
  static constexpr int kShardBits = 5;
  struct Shard {
    std::mutex mutex;
    std::vector<const Node*> slots;
    size_t count = 0;
  };

  static void grow(Shard& shard) {
    std::vector<const Node*> old = std::move(shard.slots);
    shard.slots.assign(old.empty() ? 64 : 2 * old.size(), nullptr);
    for (const Node* n : old) {
      if (!n) continue;
      size_t i = n->hash & (shard.slots.size() - 1);
      while (shard.slots[i]) i = (i + 1) & (shard.slots.size() - 1);
      shard.slots[i] = n;
    }
  }

  std::array<Shard, 1 << kShardBits> shards_;
};

// The pools are never destroyed, so Exprs in static objects stay good to the end of the process.
template <class Node>
Pool<Node>& pool() {
  static auto& p = *new Pool<Node>;
  return p;
}

uint32_t saturating_add(uint32_t a, uint32_t b) { return a + b < a ? UINT32_MAX : a + b; }

const AtomNode* intern_atom(AtomKind kind, std::string_view name, std::initializer_list<Expr> args) {
  uint64_t hash = mix(static_cast<uint64_t>(kind) + 1, std::hash<std::string_view>()(name));
  for (const Expr& a : args) hash = mix(hash, a.node()->hash);
  return pool<AtomNode>().intern(
      hash,
      [&](const AtomNode& n) {
        return n.kind == kind && n.name == name && std::equal(args.begin(), args.end(), n.args.begin(), n.args.end());
      },
      [&] {
        auto* n = new AtomNode;
        n->hash = hash;
        n->kind = kind;
        n->name = name;
        n->args = args;
        if (kind == AtomKind::symbol) n->symbols = symbol_bit(name);
        for (const Expr& a : args) {
          n->depth = std::max(n->depth, a.node()->depth + 1);
          n->size = saturating_add(n->size, a.node()->size);
          n->symbols |= a.node()->symbols;
        }
        n->monomial = intern_monomial({Atom(n)});
        n->expr = intern_expr({{1, n->monomial}});
        return n;
      });
}

bool is_name(std::string_view s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (s.empty() || !letter(s[0])) return false;
  for (char c : s) {
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '.') return false;
  }
  return true;
}

}  // namespace

uint64_t symbol_bit(std::string_view name) {
  return uint64_t{1} << (mix(1, std::hash<std::string_view>()(name)) >> 58);
}

const MonomialNode* intern_monomial(const std::vector<Atom>& factors) {
  uint64_t hash = 7;
  for (Atom a : factors) hash = mix(hash, a.node()->hash);
  return pool<MonomialNode>().intern(
      hash, [&](const MonomialNode& n) { return n.factors == factors; },
      [&] {
        auto* n = new MonomialNode;
        n->hash = hash;
        n->factors = factors;
        for (Atom a : factors) {
          n->depth = std::max(n->depth, a.node()->depth);
          n->size = saturating_add(n->size, a.node()->size);
          n->symbols |= a.node()->symbols;
          n->has_div |= a.kind() == AtomKind::floor_div;
          n->has_mod |= a.kind() == AtomKind::mod;
        }
        return n;
      });
}

const ExprNode* intern_expr(const std::vector<Product>& products) {
  uint64_t hash = 11;
  for (const Product& p : products) hash = mix(mix(hash, static_cast<uint64_t>(p.coefficient)), p.monomial->hash);
  return pool<ExprNode>().intern(
      hash, [&](const ExprNode& n) { return n.products == products; },
      [&] {
        auto* n = new ExprNode;
        n->hash = hash;
        n->products = products;
        n->terms.reserve(products.size());
        for (const auto& [coefficient, m] : products) {
          n->terms.push_back({coefficient, m->factors});
          n->depth = std::max(n->depth, m->depth);
          n->size = saturating_add(n->size, std::max(m->size, 1u));
          n->symbols |= m->symbols;
          n->has_div |= m->has_div;
          n->has_mod |= m->has_mod;
        }
        return n;
      });
}

const MonomialNode* one() {
  static const MonomialNode* n = intern_monomial({});
  return n;
}

Expr make_atom(AtomKind kind, std::initializer_list<Expr> args) {
  uint64_t size = 1;
  for (const Expr& a : args) {
    if (!a.valid() || a.node()->depth >= kMaxDepth) return Expr::invalid();
    size += a.node()->size;
  }
  if (size > kMaxSize) return Expr::invalid();
  return Expr(intern_atom(kind, {}, args)->expr);
}

}  // namespace dlc::detail

namespace dlc {

namespace {
constexpr int64_t kFirstCached = -64;
constexpr int64_t kLastCached = 1024;

const detail::ExprNode* make_constant(int64_t c) {
  return c == 0 ? detail::intern_expr({}) : detail::intern_expr({{c, detail::one()}});
}
}  // namespace

// The constants of everyday indices come from a table, without a lock.
Expr::Expr(int64_t c) : node_(nullptr) {
  static const auto cache = [] {
    std::array<const detail::ExprNode*, kLastCached - kFirstCached + 1> a{};
    for (int64_t v = kFirstCached; v <= kLastCached; ++v) a[static_cast<size_t>(v - kFirstCached)] = make_constant(v);
    return a;
  }();
  const bool cached = c >= kFirstCached && c <= kLastCached;
  node_ = cached ? cache[static_cast<size_t>(c - kFirstCached)] : make_constant(c);
}

Expr Expr::symbol(std::string_view name) {
  if (!detail::is_name(name)) return invalid();
  return Expr(detail::intern_atom(AtomKind::symbol, name, {})->expr);
}

Expr Expr::invalid() {
  static const auto* node = [] {
    auto* n = new detail::ExprNode;
    n->valid = false;
    return n;
  }();
  return Expr(node);
}

}  // namespace dlc
