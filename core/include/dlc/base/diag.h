// Diagnostics and Result<T>: how every failure in dlc travels.
//
// A function that can fail returns Result<T>; its error holds one or more diagnostics, each with a place (file, line,
// column, model node), a message and, where one is known, the next step. Nothing is thrown across a module, nothing is
// printed by a library: the tool at the end prints what it was given.
//
//   Result<int> parse(std::string_view s) {
//     if (s.empty()) return fail({}, "empty number", "write at least one digit");
//     DLC_TRY(auto v, parse_digits(s));        // returns the error, or declares v
//     DLC_CHECK(validate(v));                  // the same for Result<void>
//     return v;
//   }
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlc {

// A place in the user's input. Every member may be empty or 0 when it does not apply.
struct Loc {
  std::string file;
  int line = 0;      // 1-based; 0 = unknown
  int column = 0;    // 1-based; 0 = unknown
  std::string node;  // name of the model's node
};

enum class Severity : uint8_t { note, warning, error };

struct Diagnostic {
  Severity severity = Severity::error;
  Loc loc;
  std::string message;
  std::string hint;  // the next step for the user; may be empty
};

struct Error {
  std::vector<Diagnostic> diagnostics;

  Error() = default;
  Error(Loc loc, std::string message, std::string hint = {}) {
    diagnostics.push_back({Severity::error, std::move(loc), std::move(message), std::move(hint)});
  }
  bool empty() const { return diagnostics.empty(); }
  void add(Error other);
  // The first message, for tests and one-line reports.
  std::string_view message() const;
};

// "file:3:7: error: message (node conv1)\n  next: hint"; one line per diagnostic and hint.
std::string to_string(const Diagnostic& d);
std::string to_string(const Error& e);

template <class T = void>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(Loc loc, std::string message, std::string hint = {}) {
  return std::unexpected(Error(std::move(loc), std::move(message), std::move(hint)));
}

// The candidate nearest to `word` by edit distance, or "" when none is near: for "did you mean".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace dlc

#define DLC_CONCAT2(a, b) a##b
#define DLC_CONCAT(a, b) DLC_CONCAT2(a, b)
#define DLC_TRY_IMPL(tmp, decl, ...)                        \
  auto tmp = (__VA_ARGS__);                                 \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  decl = std::move(*tmp)
#define DLC_TRY(decl, ...) DLC_TRY_IMPL(DLC_CONCAT(dlc_try_, __LINE__), decl, __VA_ARGS__)
#define DLC_CHECK(...)                                                                                       \
  do {                                                                                                       \
    if (auto dlc_check_ = (__VA_ARGS__); !dlc_check_) return std::unexpected(std::move(dlc_check_).error()); \
  } while (false)
