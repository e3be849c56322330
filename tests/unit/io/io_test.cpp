#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "dlc/io/artifact.h"
#include "dlc/io/json.h"
#include "dlc/io/numpy.h"
#include "dlc/io/pending_folder.h"
#include "dlc_test/catch.h"

using namespace dlc;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("dlc_io_test_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

std::string slurp(const std::string& p) {
  std::ifstream f(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(f), {}};
}

void spit(const std::string& p, const std::string& s) { std::ofstream(p, std::ios::binary) << s; }

}  // namespace

TEST_CASE("npz round-trips every numpy type, and its bytes are the same each time") {
  Folder folder;
  NamedTensors tensors;
  for (const DType t : {kBool, kS8, kU8, kS16, kU16, kS32, kU32, kS64, kU64, kF16, kF32, kF64}) {
    REQUIRE_OK(Tensor x, Tensor::make(t, {2, 3}));
    for (int64_t i = 0; i < 6; ++i) x.set_int(i, i % 2);
    tensors.emplace_back(to_string(t), x);
  }
  REQUIRE_OK(Tensor scalar, Tensor::make(kF32, {}));
  scalar.set_double(0, 2.5);
  tensors.emplace_back("scalar", scalar);
  REQUIRE_OK(Tensor empty, Tensor::make(kF32, {0, 4}));
  tensors.emplace_back("empty", empty);
  const std::string path = folder / "t.npz";
  REQUIRE(write_npz(path, tensors).has_value());
  REQUIRE_OK(auto back, read_npz(path));
  REQUIRE(back.size() == tensors.size());
  for (size_t i = 0; i < back.size(); ++i) {
    CHECK(back[i].first == tensors[i].first);
    CHECK(back[i].second.dtype() == tensors[i].second.dtype());
    CHECK(back[i].second.shape() == tensors[i].second.shape());
    CHECK(std::memcmp(back[i].second.bytes(), tensors[i].second.bytes(), tensors[i].second.byte_size()) == 0);
  }
  const std::string first = slurp(path);
  REQUIRE(write_npz(path, tensors).has_value());
  CHECK(slurp(path) == first);
}

TEST_CASE("types that numpy has not come back as what they are known to be") {
  constexpr DType kS4{DType::Kind::signed_int, 4}, kU2{DType::Kind::unsigned_int, 2};
  for (const DType t : {kBF16, kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1, kS4, kU2}) {
    INFO(to_string(t));
    REQUIRE_OK(Tensor x, Tensor::make(t, {4}));
    for (int64_t i = 0; i < 4; ++i) x.set_double(i, t == kS4 ? i - 2 : i % 2 + 1);
    REQUIRE_OK(const Tensor file, parse_npy(to_npy(x), "x"));
    CHECK(file.dtype() == numpy_type(t));
    const Tensor back = unpacked(file, t);
    REQUIRE(back.dtype() == t);
    for (int64_t i = 0; i < 4; ++i) CHECK(back.get_double(i) == x.get_double(i));
    CHECK(unpacked(x, kF32).dtype() == t);
  }
  // As ml_dtypes writes them: bits, whose type numpy does not know.
  const auto written = [](const std::string& descr, const std::string& data) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (2,), }";
    header.resize(118, ' ');
    const std::string all = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + data;
    REQUIRE_OK(auto t, parse_npy(std::as_bytes(std::span(all.data(), all.size())), "x"));
    return t;
  };
  const Tensor nibbles = written("<V1", "\x0e\x07");
  CHECK(unpacked(nibbles, kS4).get_int(0) == -2);
  CHECK(unpacked(nibbles, kS4).get_int(1) == 7);
  CHECK(unpacked(nibbles, kF4E2M1).get_double(0) == -4);
  CHECK(unpacked(nibbles, kU2).dtype() == kU8);  // 14 is none: what takes it says so
  CHECK(unpacked(nibbles, kS8).dtype() == kU8);
  CHECK(unpacked(written("<f1", "\x3c\xbe"), kF8E5M2).get_double(1) == -1.5);
  CHECK(unpacked(written("<V2", std::string("\x80\x3f\xc0\xbf", 4)), kBF16).get_double(1) == -1.5);
}

TEST_CASE("damaged npy and npz files are errors") {
  Folder folder;
  const std::string path = folder / "t.npz";
  REQUIRE_OK(Tensor x, Tensor::make(kF32, {8}));
  REQUIRE(write_npz(path, {{"x", x}}).has_value());
  const std::string good = slurp(path);
  for (size_t n = 0; n < good.size(); n += 7) {
    spit(path, good.substr(0, n));
    CHECK_FALSE(read_npz(path).has_value());
  }
  std::string other = good;  // of the data, which the archive has a sum of
  other[good.find("NUMPY") + 130] ^= 1;
  spit(path, other);
  REQUIRE_ERROR(read_npz(path), "entry 'x.npy' is damaged");
  const auto npy = to_npy(x);
  CHECK_FALSE(parse_npy(std::span(npy).first(npy.size() - 1), "x").has_value());
  std::string huge = "\x93NUMPY\x01";
  huge += '\0';
  huge += 'v';
  huge += '\0';
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }";
  header.resize('v', ' ');
  huge += header;
  REQUIRE_ERROR(parse_npy(std::as_bytes(std::span(huge.data(), huge.size())), "x"), "does not fit");
}

TEST_CASE("a folder is replaced whole or not at all") {
  Folder folder;
  const std::string path = folder / "out";
  const OwnEntry own = [](std::string_view name) { return name == "a" || name == "b"; };
  const auto entries = [&] {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(path)) names.push_back(e.path().filename().string());
    std::ranges::sort(names);
    return names;
  };
  const auto beside = [&] { return std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()); };
  {
    REQUIRE_OK(PendingFolder f, PendingFolder::open(path + "/", own));
    spit(f / "a", "1");
    CHECK_FALSE(fs::exists(path));
    REQUIRE(f.replace().has_value());
  }
  CHECK(slurp(path + "/a") == "1");
  {
    REQUIRE_OK(PendingFolder f, PendingFolder::open(path, own));
    spit(f / "b", "2");
    CHECK(entries() == std::vector<std::string>{"a"});
  }  // given up
  CHECK(entries() == std::vector<std::string>{"a"});
  {
    REQUIRE_OK(PendingFolder f, PendingFolder::open(path, own));
    spit(f / "b", "2");
    REQUIRE(f.replace().has_value());
  }
  CHECK(entries() == std::vector<std::string>{"b"});
  CHECK(beside() == 1);  // nothing else is left
  // What a killed process left is taken, with its files.
  {
    REQUIRE_OK(PendingFolder f, PendingFolder::open(path, own));
    spit(f / "a", "3");
    const fs::path left = fs::path(f / "a").parent_path();
    REQUIRE(f.replace().has_value());
    fs::create_directories(left);
    spit((left / "old").string(), "4");
  }
  {
    REQUIRE_OK(PendingFolder f, PendingFolder::open(path, own));
    spit(f / "b", "5");
    REQUIRE(f.replace().has_value());
  }
  CHECK(entries() == std::vector<std::string>{"b"});
  // Somebody's files stay.
  spit(path + "/mine", "6");
  REQUIRE_ERROR(PendingFolder::open(path, own), "it holds 'mine'");
  REQUIRE_ERROR(PendingFolder::check(path + "/mine", own), "is no folder");
  REQUIRE_ERROR(PendingFolder::check(path + "/mine/deep", own), "is no folder");
  REQUIRE_ERROR(PendingFolder::check(".", own), "runs in");
  REQUIRE_ERROR(PendingFolder::check("", own), "is empty");
  REQUIRE(PendingFolder::check(folder / "not/there/yet", own).has_value());
  CHECK_FALSE(fs::exists(folder / "not"));
  // A link leads to the folder that is replaced.
  fs::remove(path + "/mine");
  fs::create_symlink("out", folder / "link");
  {
    REQUIRE_OK(PendingFolder f, PendingFolder::open(folder / "link", own));
    spit(f / "a", "7");
    REQUIRE(f.replace().has_value());
  }
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(entries() == std::vector<std::string>{"a"});
}

TEST_CASE("Fortran order is transposed") {
  std::string s = "\x93NUMPY\x01";
  s += '\0';
  s += 'v';
  s += '\0';
  std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }";
  header.resize('v', ' ');
  s += header;
  s += std::string("\x01\x02\x03\x04\x05\x06", 6);  // columns (1 2) (3 4) (5 6)
  REQUIRE_OK(auto t, parse_npy(std::as_bytes(std::span(s.data(), s.size())), "x"));
  CHECK(t.shape() == std::vector<int64_t>{2, 3});
  CHECK(t.get_int(0) == 1);
  CHECK(t.get_int(1) == 3);
  CHECK(t.get_int(3) == 2);
}

TEST_CASE("an artifact gives back its sections, and any changed or missing byte is found") {
  Folder folder;
  const std::string path = folder / "m.dlca";
  {
    REQUIRE_OK(ArtifactWriter w, ArtifactWriter::create(path));
    REQUIRE(w.add("program", "dlc.program 1\n").has_value());
    w.begin("weights");
    const std::string head(4999, 'w'), tail(1 << 21, 'x');
    REQUIRE(w.append(std::as_bytes(std::span(head))).has_value());
    w.align(64);
    CHECK(w.position() == 5056);
    REQUIRE_OK(const MappedFile view, w.map(tail.size()));
    REQUIRE(w.append(std::as_bytes(std::span(tail))).has_value());
    CHECK(view.text() == tail);
    CHECK_FALSE(fs::exists(path));
    REQUIRE(w.finish(R"({"name": "m"})").has_value());
    CHECK(view.text() == tail);
  }
  const std::string good = slurp(path);
  {
    REQUIRE_OK(auto a, Artifact::open(path));
    CHECK(a.meta() == R"({"name":"m"})");
    REQUIRE_OK(auto s, a.section("weights"));
    CHECK(s.size() == 5056 + (1 << 21));
    CHECK(reinterpret_cast<uintptr_t>(s.data()) % 4096 == 0);
    REQUIRE_OK(const auto loaded, a.load("weights"));
    CHECK(std::ranges::equal(loaded.bytes, s));
    REQUIRE_ERROR(a.section("none"), "no section");
    REQUIRE_ERROR(a.load("none"), "no section");
  }
  const auto is_refused = [&] {
    auto a = Artifact::open(path);
    if (!a) return true;
    const bool loads = a->load("weights").has_value();
    CHECK(loads == a->section("weights").has_value());
    return !loads || !a->section("program");
  };
  CHECK_FALSE(is_refused());
  // Header, what follows it, each section and what fills it up, the table.
  const size_t weights = 8192, table = weights + 8192 + (1 << 21);
  for (const size_t at : {size_t{0}, size_t{4}, size_t{9}, size_t{17}, size_t{30}, size_t{40}, size_t{4095},
                          size_t{4096}, size_t{5000}, weights, weights + 4998, weights + 5010,
                          weights + 5056 + (1 << 21) - 1, table - 1, table, table + 40, good.size() - 1}) {
    INFO(at);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    spit(path, bad);
    CHECK(is_refused());
  }
  for (size_t n = 0; n < good.size(); n += n < 10000 ? 509 : 300007) {
    spit(path, good.substr(0, n));
    CHECK(is_refused());
  }
  spit(path, good.substr(0, good.size() - 1));
  CHECK(is_refused());
  spit(path, good + '\0');
  CHECK(is_refused());
}

TEST_CASE("an artifact that is not finished leaves nothing behind") {
  Folder folder;
  {
    REQUIRE_OK(ArtifactWriter w, ArtifactWriter::create(folder / "m.dlca"));
    REQUIRE(w.add("program", "dlc.program 1\n").has_value());
    REQUIRE_ERROR(w.finish("{"), "not JSON");
  }
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("JSON is as deep as an artifact needs, brackets in strings do not count") {
  const auto nested = [](size_t n) { return std::string(n, '[') + std::string(n, ']'); };
  CHECK(is_shallow_json(nested(50)));
  CHECK_FALSE(is_shallow_json(nested(3000000)));
  CHECK(is_shallow_json("{\"a\\\"" + std::string(1000, '[') + "\": [1]}"));
  Folder folder;
  const std::string path = folder / "deep.dlca";
  REQUIRE_OK(ArtifactWriter w, ArtifactWriter::create(path));
  REQUIRE(w.finish("{\"deep\": " + nested(1000) + "}").has_value());
  REQUIRE_ERROR(Artifact::open(path), "table is not understood");
}

TEST_CASE("an unwritable output is an error and leaves nothing behind") {
  Folder folder;
  REQUIRE_ERROR(write_file(folder / "no/such/folder/x", std::string_view("x")), "cannot write");
  CHECK(fs::is_empty(folder.path));
}
