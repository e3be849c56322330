#include "plugins/cpu/shared_object.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <thread>

LLD_HAS_DRIVER(elf)

namespace dlc::cpu {

namespace {

std::unexpected<Error> system_error(std::string_view what) {
  return fail({}, fmt::format("cannot link the library: {}: {}", what, std::strerror(errno)));
}

// An open file descriptor, which has a path as long as it is open.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  void reset(int fd) {
    close();
    fd_ = fd;
  }
  int get() const { return fd_; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_ = -1;
};

Result<> fill(Descriptor& file, const char* name, std::span<const std::byte> bytes) {
  file.reset(::memfd_create(name, MFD_CLOEXEC));
  if (file.get() < 0) return system_error("memory file");
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("memory file");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

// What comes out of a pipe, read by a thread of its own.
class Pipe {
 public:
  // `expected`: about how many bytes will come.
  Result<> open(size_t expected) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe");
    out_.reset(ends[0]);
    in_.reset(ends[1]);
    static_cast<void>(::fcntl(ends[0], F_SETPIPE_SZ, static_cast<int>(kChunk)));  // fewer turns, where it is allowed
    bytes_.reserve(expected);
    thread_ = std::thread([this] { read(); });
    return {};
  }
  ~Pipe() { finish(); }
  std::string path() const { return in_.path(); }
  std::vector<std::byte> finish() {
    in_.close();
    if (thread_.joinable()) thread_.join();
    return std::move(bytes_);
  }

 private:
  void read() {
    std::vector<std::byte> chunk(kChunk);
    while (true) {
      const ssize_t n = ::read(out_.get(), chunk.data(), chunk.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      bytes_.insert(bytes_.end(), chunk.begin(), chunk.begin() + n);
    }
  }

  static constexpr size_t kChunk = size_t{1} << 20;
  Descriptor out_, in_;
  std::thread thread_;
  std::vector<std::byte> bytes_;
};

std::string libm() {
  for (const char* path : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6"})
    if (std::filesystem::exists(path)) return path;
  return {};
}

}  // namespace

Result<std::vector<std::byte>> link_shared(const std::vector<std::byte>& object, const std::string& soname,
                                           const std::vector<std::string>& exported) {
  std::string text = "{ global:";
  for (const std::string& s : exported) text += " " + s + ";";
  text += " local: *; };";
  Descriptor input, script;
  Pipe output;
  DLC_CHECK(fill(input, "object", object));
  DLC_CHECK(fill(script, "script", std::as_bytes(std::span(text.data(), text.size()))));
  DLC_CHECK(output.open(object.size()));
  std::vector<std::string> arguments = {"ld.lld", "-shared",     "--version-script=" + script.path(),
                                        "-z",     "noexecstack", "--as-needed",
                                        "-s",     "-soname",     soname,
                                        "-o",     output.path(), input.path()};
  if (const std::string m = libm(); !m.empty()) arguments.push_back(m);
  std::vector<const char*> argv;
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  std::string messages;
  llvm::raw_string_ostream out(messages);
  const lld::Result r = lld::lldMain(argv, out, out, {{lld::Gnu, &lld::elf::link}});
  std::vector<std::byte> bytes = output.finish();
  if (r.retCode != 0) return fail({}, "internal error: the linker failed: " + messages);
  return bytes;
}

}  // namespace dlc::cpu
