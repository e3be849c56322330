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
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/io/reads.h"
#include "dlc/hw/load.h"
#include "tools/dlc/cli.h"
#include "tools/dlc/crash_arguments.h"
#include "tools/dlc/shell.h"

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
// A file that was read. They are chained as they are opened, by any thread; what is in the chain does not change.
struct Copied {
  std::string from, path;
  std::string entry;  // of the manifest, up to what is known once it is copied
  std::atomic<Copied*> next{nullptr};
};

// All that the handler needs, made before.
struct Prepared {
  std::string folder, files_folder, manifest_path, stack_path;
  std::string manifest;  // up to what only the end knows
  Copied copied;         // before the first
  std::vector<Kept> kept;
  std::string replay;  // the command, for a shell; and in JSON, escaped
  std::string replay_json;
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

// The file, as far as it is not too large, and its hash. One that is no longer there is left out: the command that read
// it threw it away.
int copy(const Copied& file, Writer& manifest, bool& first) {
  static char buffer[1 << 16];
  const int in = open(file.from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (in < 0) return 0;
  struct stat about{};
  const bool is_copied = fstat(in, &about) == 0 && static_cast<uint64_t>(about.st_size) <= kMostCopied;
  int error = 0;
  uint64_t bytes = 0;
  XXH3_64bits_reset(prepared->hash);
  std::optional<Writer> out;
  if (is_copied) out.emplace(file.path.c_str());
  for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;) {
    XXH3_64bits_update(prepared->hash, buffer, static_cast<size_t>(n));
    if (out) out->put(buffer, static_cast<size_t>(n));
    bytes += static_cast<uint64_t>(n);
  }
  if (out) error = out->error();
  close(in);
  manifest.put(first ? "\n    " : ",\n    ").put(file.entry).number(bytes);
  manifest.put(is_copied ? ", \"copied\": true" : ", \"copied\": false").put(", \"hash\": \"");
  manifest.number(XXH3_64bits_digest(prepared->hash), 16).put("\"}");
  first = false;
  return error;
}

// Nothing half-written stays.
void remove_all() {
  for (const Copied* c = prepared->copied.next; c != nullptr; c = c->next) unlink(c->path.c_str());
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
    for (const Copied* c = prepared->copied.next; c != nullptr; c = c->next) note(copy(*c, manifest, first));
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
  err.put("  a reproducer is in ").put(prepared->folder).put("\n  next: ").put(prepared->replay);
  err.put(" runs it again; please report it with this folder\n");
}

void die(int signal) {
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void out_of_time(int) {
  remove_all();
  Writer(STDERR_FILENO).put("  no reproducer: the files that were read cannot be copied in time\n");
  die(dying.load());
}

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
    out.put(error == 0 ? prepared->replay_json : "no reproducer could be written").put("\", \"more\": []}}\n");
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

// A name of its own in the bundle: any bytes may be in that of the original.
std::string stored(const fs::path& file, size_t number) {
  std::string name = file.filename().string();
  name = name.substr(name.size() - std::min<size_t>(name.size(), 100));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  return fmt::format("files/{}_{}", number, name);
}

// Called with each file that dlc opens, whichever way it came to its name.
void note_read(const std::string& given) {
  static std::mutex one;
  static std::set<std::string> known;
  static Copied* last = &prepared->copied;
  if (given.ends_with(".plugin.yaml") || given.ends_with(".so")) return;  // of plugins, which are no part of a bundle
  std::error_code ec;
  const fs::path file = fs::absolute(given, ec).lexically_normal();
  const std::lock_guard lock(one);
  if (!known.insert(file.string()).second) return;
  auto* added = new Copied;  // for as long as the process lives
  const std::string path = stored(file, known.size());
  added->from = file.string();
  added->path = prepared->folder + "/" + path;
  added->entry = fmt::format("{{\"path\": {}, \"original\": {}, \"bytes\": ", dump(path), dump(file.string()));
  last->next = added;
  last = added;
}

// The variables that dlc reads.
Json environment() {
  Json out = Json::object();
  for (const char* name : {"DLC_PLUGIN_PATH", "DLC_PYTHON"})
    if (const char* value = std::getenv(name)) out[name] = value;
  return out;
}

std::string base_folder() {
  if (const char* chosen = std::getenv(kFolderVariable)) return chosen;
  std::error_code ec;
  return fs::temp_directory_path(ec).string();
}

}  // namespace

void arm(CLI::App& app, bool json) {
  const std::string base = base_folder();
  if (base.empty()) return;
  static Prepared p;
  std::error_code ec;
  p.folder = fmt::format("{}/dlc-crash-{}-{}", fs::absolute(base, ec).lexically_normal().string(), std::time(nullptr),
                         getpid());
  p.files_folder = p.folder + "/files";
  p.manifest_path = p.folder + "/" + kManifest;
  p.stack_path = p.folder + "/stack.txt";
  p.replay = "dlc replay " + shell_word(p.folder);
  p.replay_json = dump(p.replay);
  p.replay_json = p.replay_json.substr(1, p.replay_json.size() - 2);
  p.hash = XXH3_createState();
  p.json = json;
  const CommandLine line = command_line(app);
  Json words = Json::array();
  for (const Word& w : line.words)
    words.push_back(w.path.empty() ? Json(w.before) : Json{{"before", w.before}, {"path", w.path}, {"after", w.after}});
  const Json head{{"dlc", DLC_VERSION},
                  {"folder", fs::current_path(ec).string()},
                  {"installation", installed_descriptions()},
                  {"environment", environment()},
                  {"features", native_features()},
                  {"arguments", std::move(words)},
                  {"folders", line.folders}};
  p.manifest = head.dump(2, ' ', false, Json::error_handler_t::replace);
  p.manifest.resize(p.manifest.rfind("\n}"));
  p.manifest += ",\n";
  if (p.hash == nullptr) return;
  prepared = &p;
  observe_reads(note_read);
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
