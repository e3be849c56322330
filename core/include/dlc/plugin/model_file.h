// Where the large results of a compilation go, and a .dlca that is written while its model is compiled.
//
//   DLC_TRY(ModelFile file, ModelFile::create("m.dlca"));
//   DLC_TRY(part, compile_partition(..., file));    // its constants are on their way to the disk
//   DLC_CHECK(file.finish(model));                  // the rest; without this nothing of the file stays
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>

#include "dlc/base/huge.h"
#include "dlc/io/artifact.h"
#include "dlc/plugin/compiled.h"

namespace dlc {

inline constexpr size_t kConstantAlign = 64;
inline size_t constant_room(size_t bytes) { return (bytes + kConstantAlign - 1) / kConstantAlign * kConstantAlign; }

class ResultStore {
 public:
  virtual ~ResultStore() = default;
  // Room for constants that are kept next, one behind the other: constant_room() of each, together.
  virtual Result<> reserve(size_t bytes) = 0;
  // A tensor with these bytes, which need not last. `is_lasting`: they do, and may be kept once for all who give them.
  virtual Result<Tensor> keep(const Tensor& t, bool is_lasting) = 0;
  // Whether it took this file of the plugin's ("library", ...), so that it need not be kept.
  virtual Result<bool> take(const std::string&, std::span<const std::byte>) { return false; }
  // A piece of it, which continues it or replaces bytes that it has.
  virtual Result<bool> take_at(const std::string&, uint64_t, std::span<const std::byte>) { return false; }
};

// What was kept, by its bytes: partitions that are compiled apart may lay out the same constant in the same way.
class KeptConstants {
 public:
  const Tensor* equal(const Tensor& t) const;  // null: there is none
  void add(const Tensor& kept);

 private:
  std::multimap<size_t, Tensor> by_size_;
};

// In memory, in huge pages.
class MemoryStore : public ResultStore {
 public:
  Result<> reserve(size_t bytes) override;
  Result<Tensor> keep(const Tensor& t, bool is_lasting) override;

 private:
  std::shared_ptr<const HugePages> memory_;
  size_t size_ = 0, used_ = 0;
  KeptConstants kept_;
};

class ModelFile final : public ResultStore {
 public:
  static Result<ModelFile> create(const std::string& path);
  // What is kept is a view of the file.
  Result<> reserve(size_t bytes) override;
  Result<Tensor> keep(const Tensor& t, bool is_lasting) override;
  Result<> finish(const CompiledModel& model);

 private:
  using Bytes = std::pair<const std::byte*, size_t>;
  explicit ModelFile(ArtifactWriter file) : file_(std::move(file)) {}
  Result<uint64_t> write(const Tensor& t);
  Result<uint64_t> offset_of(const Tensor& t);

  ArtifactWriter file_;
  MappedFile view_;
  uint64_t view_begin_ = 0;  // in the section of weights
  KeptConstants kept_;
  std::map<Bytes, uint64_t> offsets_;  // of what is in the file; looked up only, never iterated
};

// As the one of compiled.h; constants that the plugin laid out go to `results`, and so do files that this takes.
Result<CompiledPartition> compile_partition(const std::string& device, Backend* backend, Program program,
                                            const Hardware& hardware, const std::string& options, EmitResult* files,
                                            ResultStore& results);

}  // namespace dlc
