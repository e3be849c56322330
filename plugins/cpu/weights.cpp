#include "plugins/cpu/weights.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

namespace dlc::cpu {

namespace {

constexpr std::string_view kMagic = "DLCW0001";
constexpr size_t kPiece = size_t{1} << 20;  // what stays in the cache between the checksum and who takes it

// Where each constant goes.
Weights lay_out(const Prepared& prepared) {
  Weights w;
  w.size = Weights::kAlign;
  w.places.assign(prepared.program.buffers.size(), 0);
  for (const int c : prepared.constants()) {
    w.places[static_cast<size_t>(c)] = w.size;
    w.size += (prepared.constant_bytes(c) + Weights::kAlign - 1) / Weights::kAlign * Weights::kAlign;
  }
  return w;
}

// From front to back, so that the checksum is known last: the head is what is written twice.
class Stream {
 public:
  explicit Stream(const PutWeights& put) : put_(put), hash_(XXH3_createState(), XXH3_freeState) {
    XXH3_64bits_reset(hash_.get());
  }

  Result<> append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kPiece));
      XXH3_64bits_update(hash_.get(), piece.data(), piece.size());
      DLC_CHECK(put_(at_, piece));
      at_ += piece.size();
      bytes = bytes.subspan(piece.size());
    }
    return {};
  }
  Result<> fill(size_t up_to) {
    static constexpr std::byte kZeros[Weights::kAlign] = {};
    return append(std::span(kZeros).first(up_to - at_));
  }
  Result<> put_head(const std::array<std::byte, Weights::kAlign>& head) {
    at_ = std::max<uint64_t>(at_, head.size());
    return put_(0, head);
  }
  uint64_t checksum() const { return XXH3_64bits_digest(hash_.get()); }

 private:
  const PutWeights& put_;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash_;
  uint64_t at_ = 0;
};

Result<> write(const Prepared& prepared, Weights& w, const PutWeights& put) {
  Stream stream(put);
  DLC_CHECK(stream.put_head(w.head));
  std::vector<std::byte> memory;
  for (const int c : prepared.constants()) {
    DLC_CHECK(stream.fill(w.places[static_cast<size_t>(c)]));
    DLC_TRY(const auto bytes, prepared.constant(c, memory));
    DLC_CHECK(stream.append(bytes));
  }
  DLC_CHECK(stream.fill(w.size));
  const uint64_t sum = stream.checksum();
  std::memcpy(w.head.data(), kMagic.data(), kMagic.size());
  std::memcpy(w.head.data() + kMagic.size(), &sum, sizeof(sum));
  return stream.put_head(w.head);
}

}  // namespace

Result<Weights> make_weights(const Prepared& prepared, size_t most_inside, const PutWeights& put) {
  Weights w = lay_out(prepared);
  if (w.size > most_inside) {
    DLC_CHECK(write(prepared, w, put));
    return w;
  }
  DLC_TRY(HugePages memory, HugePages::allocate(static_cast<int64_t>(w.size)));
  DLC_CHECK(write(prepared, w, [&](uint64_t offset, std::span<const std::byte> bytes) -> Result<> {
    std::memcpy(memory.data() + offset, bytes.data(), bytes.size());
    return {};
  }));
  w.memory = std::move(memory);
  return w;
}

}  // namespace dlc::cpu
