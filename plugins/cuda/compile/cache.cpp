#include <fmt/format.h>
#include <xxhash.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "dlc/io/file.h"
#include "plugins/cuda/compile/compile.h"

namespace dlc::cuda {

namespace {

namespace fs = std::filesystem;

// Empty: there is no place for it.
fs::path folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != 0) return fs::path(cache) / "dlc" / "cuda";
  return home == nullptr || *home == 0 ? fs::path() : fs::path(home) / ".cache" / "dlc" / "cuda";
}

}  // namespace

std::string cache_key(const std::vector<std::string_view>& parts) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const std::string_view p : parts) {
    const uint64_t size = p.size();
    XXH3_128bits_update(state, &size, sizeof size);
    XXH3_128bits_update(state, p.data(), p.size());
  }
  const XXH128_hash_t h = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

std::optional<Bytes> cached(const std::string& key) {
  const fs::path f = folder();
  std::error_code error;
  if (f.empty() || !fs::is_regular_file(f / key, error)) return std::nullopt;
  const auto file = map_file((f / key).string());
  if (!file || file->bytes.size() < sizeof(uint64_t)) return std::nullopt;
  // A hash stands before the bytes: half a file is none.
  const auto bytes = file->bytes.subspan(sizeof(uint64_t));
  uint64_t expected = 0;
  std::memcpy(&expected, file->bytes.data(), sizeof expected);
  if (XXH3_64bits(bytes.data(), bytes.size()) != expected) return std::nullopt;
  return Bytes(bytes.begin(), bytes.end());
}

void keep(const std::string& key, const Bytes& bytes) {
  const fs::path f = folder();
  std::error_code error;
  if (f.empty() || (fs::create_directories(f, error), error)) return;
  const uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  Bytes whole(sizeof hash + bytes.size());
  std::memcpy(whole.data(), &hash, sizeof hash);
  std::memcpy(whole.data() + sizeof hash, bytes.data(), bytes.size());
  (void)write_file((f / key).string(), std::span<const std::byte>(whole));
}

}  // namespace dlc::cuda
