#include "tools/dlc/crash.h"

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "dlc/hw/load.h"
#include "tools/dlc/crash_arguments.h"
#include "tools/dlc/output.h"

namespace dlc::cli::crash {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMostCopied = uint64_t{64} << 20;  // of a file; of larger ones only hash and path are kept
constexpr unsigned kSeconds = 20;                     // for the handler: then the process dies without a bundle
constexpr std::array kSignals = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

struct Kept {
  std::string path;  // of the file in the bundle
  std::string text;
};
struct Copied {
  std::string from, path;
  std::string entry;  // of the manifest, up to the hash
};

// All that the handler needs, made before.
struct Prepared {
  std::string folder, files_folder, manifest_path, stack_path;
  std::string manifest;        // up to what only the end knows
  std::vector<Copied> copied;  // into files/
  std::vector<Kept> kept;
  bool json = false;
  XXH3_state_t* hash = nullptr;
};
Prepared* prepared = nullptr;  // null: no bundle is made

std::array<char, 160> step{};  // as printable ASCII without quotes, since no handler can escape
std::atomic<int> dying{0};     // the signal that is handled

// ---- in the handler: no memory is allocated, nothing is locked

class Writer {
 public:
  explicit Writer(const char* path) : fd_(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) {
    if (fd_ < 0) error_ = errno;
  }
  explicit Writer(int fd) : fd_(fd), owned_(false) {}
  ~Writer() {
    if (owned_ && fd_ >= 0) close(fd_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Writer& put(const char* bytes, size_t n) {
    while (n > 0 && error_ == 0) {
      const ssize_t w = write(fd_, bytes, n);
      if (w < 0 && errno == EINTR) continue;
      if (w <= 0) {
        error_ = w < 0 ? errno : ENOSPC;
        break;
      }
      bytes += w;
      n -= static_cast<size_t>(w);
    }
    return *this;
  }
  Writer& put(std::string_view s) { return put(s.data(), s.size()); }
  Writer& number(uint64_t v, unsigned base = 10) {
    char digits[24];
    char* at = std::end(digits);
    do *--at = "0123456789abcdef"[v % base];
    while ((v /= base) != 0);
    return put(at, static_cast<size_t>(std::end(digits) - at));
  }
  int fd() const { return fd_; }
  int error() const { return error_; }

 private:
  int fd_;
  bool owned_ = true;
  int error_ = 0;
};

std::string_view name_of(int signal) {
  const char* abbreviation = sigabbrev_np(signal);
  return abbreviation == nullptr ? "?" : abbreviation;
}

// The file, as far as it is not too large, and its hash. An error of reading is no error: the bundle lacks the file.
int copy(const Copied& file, Writer& manifest) {
  static char buffer[1 << 16];
  const int in = open(file.from.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about{};
  const bool is_there = in >= 0 && fstat(in, &about) == 0;
  const bool is_copied = is_there && static_cast<uint64_t>(about.st_size) <= kMostCopied;
  int error = 0;
  XXH3_64bits_reset(prepared->hash);
  if (is_there) {
    std::optional<Writer> out;
    if (is_copied) out.emplace(file.path.c_str());
    for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;) {
      XXH3_64bits_update(prepared->hash, buffer, static_cast<size_t>(n));
      if (out) out->put(buffer, static_cast<size_t>(n));
    }
    if (out) error = out->error();
  }
  if (in >= 0) close(in);
  manifest.put(file.entry).put(is_copied ? "true" : "false").put(", \"hash\": \"");
  manifest.number(XXH3_64bits_digest(prepared->hash), 16).put("\"}");
  return error;
}

// Nothing half-written stays.
void remove_all() {
  for (const Copied& c : prepared->copied) unlink(c.path.c_str());
  for (const Kept& k : prepared->kept) unlink(k.path.c_str());
  unlink(prepared->manifest_path.c_str());
  unlink(prepared->stack_path.c_str());
  rmdir(prepared->files_folder.c_str());
  rmdir(prepared->folder.c_str());
}

// 0, or the number of an error.
int write_bundle(int signal, std::string_view message) {
  if (mkdir(prepared->folder.c_str(), 0755) != 0) return errno;
  if (mkdir(prepared->files_folder.c_str(), 0755) != 0) return errno;
  int error = 0;
  const auto note = [&](int e) { error = error != 0 ? error : e; };
  {
    Writer manifest(prepared->manifest_path.c_str());
    manifest.put(prepared->manifest).put("  \"signal\": ").number(static_cast<uint64_t>(signal));
    manifest.put(",\n  \"message\": \"")
        .put(message)
        .put("\",\n  \"step\": \"")
        .put(step.data(), strnlen(step.data(), step.size()));
    manifest.put("\",\n  \"files\": [");
    bool first = true;
    for (const Copied& c : prepared->copied) {
      manifest.put(first ? "\n    " : ",\n    ");
      first = false;
      note(copy(c, manifest));
    }
    manifest.put("]\n}\n");
    note(manifest.error());
  }
  for (const Kept& k : prepared->kept) {
    Writer out(k.path.c_str());
    out.put(k.text);
    note(out.error());
  }
  Writer stack(prepared->stack_path.c_str());
  if (stack.error() == 0) {  // last, since it looks into libraries
    void* frames[128];
    backtrace_symbols_fd(frames, backtrace(frames, 128), stack.fd());
  }
  note(stack.error());
  if (error != 0) remove_all();
  return error;
}

void say(int error) {
  Writer err(STDERR_FILENO);
  if (error != 0) {
    const char* why = strerrordesc_np(error);
    err.put("  no reproducer could be written to ").put(prepared->folder).put(": ").put(why == nullptr ? "?" : why);
    err.put("\n  DLC_CRASH_DIR says where they go\n");
    return;
  }
  err.put("  a reproducer is in ").put(prepared->folder).put("\n  next: dlc replay ").put(prepared->folder);
  err.put(" runs it again; please report it with this folder\n");
}

void die(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void out_of_time(int) { die(dying.load()); }

[[maybe_unused]] void on_signal(int signal) {
  for (const int s : kSignals) std::signal(s, SIG_DFL);  // a second one ends the process at once
  dying = signal;
  std::signal(SIGALRM, out_of_time);
  alarm(kSeconds);
  Writer err(STDERR_FILENO);
  err.put("error: internal error: signal ").number(static_cast<uint64_t>(signal)).put(" (SIG").put(name_of(signal));
  err.put(") at: ").put(step.data(), strnlen(step.data(), step.size())).put("\n");
  const int error = write_bundle(signal, "");
  say(error);
  if (prepared->json) {
    Writer out(STDOUT_FILENO);
    out.put("{\"error\": {\"severity\": \"error\", \"message\": \"internal error: signal ");
    out.number(static_cast<uint64_t>(signal))
        .put("\", \"file\": \"\", \"line\": 0, \"column\": 0, \"node\": \"\", \"hint\": \"");
    out.put(error == 0 ? "dlc replay " : "no reproducer could be written to ").put(prepared->folder);
    out.put("\", \"more\": []}}\n");
  }
  alarm(0);
  die(signal);
}

// ---- before

std::string ascii(std::string_view text) {
  std::string out(text.substr(0, 2000));
  for (char& c : out)
    if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') c = '?';
  return out;
}

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The file under a name of its own in the bundle; what belongs to it has the same number.
std::string stored(const std::string& file, size_t number) {
  return fmt::format("files/{}_{}", number, fs::path(file).filename().string());
}

void add_file(Prepared& p, const std::string& file, size_t number) {
  std::error_code ec;
  const std::string path = stored(file, number), original = fs::absolute(file, ec).string();
  std::string entry = fmt::format("{{\"path\": {}, \"original\": {}, \"bytes\": {}, \"copied\": ", dump(path),
                                  dump(original), fs::file_size(file, ec));
  p.copied.push_back({original, p.folder + "/" + path, std::move(entry)});
}

std::string base_folder() {
  if (const char* chosen = std::getenv(kFolderVariable)) return chosen;
  std::error_code ec;
  return fs::temp_directory_path(ec).string();
}

}  // namespace

void arm(const std::vector<std::string>& arguments) {
  const std::string base = base_folder();
  if (base.empty()) return;
  static Prepared p;
  std::error_code ec;
  p.folder = fmt::format("{}/dlc-crash-{}-{}", fs::absolute(base, ec).string(), std::time(nullptr), getpid());
  p.files_folder = p.folder + "/files";
  p.manifest_path = p.folder + "/" + kManifest;
  p.stack_path = p.folder + "/stack.txt";
  p.hash = XXH3_createState();
  Json words = Json::array();
  for (const Word& w : classify(arguments)) {
    p.json |= w.before == "--json";
    Json j{{"before", w.before}, {"after", w.after}};
    if (w.role == Word::Role::output) j["output"] = fs::path(w.file).filename().string();
    if (w.role == Word::Role::input) {
      const size_t number = words.size();
      j["file"] = stored(w.file, number);
      j["original"] = fs::absolute(w.file, ec).string();
      add_file(p, w.file, number);
      if (const std::string weights = weights_beside(w.file); weights != w.file && fs::is_regular_file(weights, ec))
        add_file(p, weights, number);
    }
    words.push_back(std::move(j));
  }
  const Json head{{"dlc", DLC_VERSION},
                  {"folder", fs::current_path(ec).string()},
                  {"features", native_features()},
                  {"arguments", std::move(words)}};
  p.manifest = head.dump(2, ' ', false, Json::error_handler_t::replace);
  p.manifest.resize(p.manifest.rfind("\n}"));
  p.manifest += ",\n";
  if (p.hash == nullptr) return;
  prepared = &p;
  at("start");

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // those tell more of a crash themselves
  void* frame[1];
  backtrace(frame, 1);  // loads what it needs
  static std::array<char, 1 << 16> own_stack;
  stack_t stack{};
  stack.ss_sp = own_stack.data();
  stack.ss_size = own_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int s : kSignals) sigaction(s, &action, nullptr);
#endif
}

void at(std::string_view where) {
  const std::string text = ascii(where);
  const size_t n = std::min(text.size(), step.size() - 1);
  std::copy_n(text.data(), n, step.data());
  step[n] = 0;
}

void keep(const std::string& name, std::string text) {
  if (prepared == nullptr) return;
  const std::string path = prepared->folder + "/" + name;
  std::erase_if(prepared->kept, [&](const Kept& k) { return k.path == path; });
  prepared->kept.push_back({path, std::move(text)});
}

void internal_error(std::string_view message) {
  if (prepared == nullptr) return;
  say(write_bundle(0, ascii(message)));
}

}  // namespace dlc::cli::crash
