// Mapper: calls to chains of instructions and tiles. Whether a call can be done is found by doing it, so what is
// answered with yes will be emitted; and each kind of call (everything but names and the values of constants) is
// searched for once.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/map/emit.h"
#include "dlc/program/refusal.h"

namespace dlc::map {

struct Mapping {
  Chain chain;
  Tiling tiling;
  std::string plan() const;  // "mac.row, vec"
  std::string tile() const;  // "o.1:1 y:14 x:14"
};

// The model's node of a call.
Loc place_of(const Program& p, const Call& call);

class Mapper {
 public:
  explicit Mapper(std::shared_ptr<const HwDescription> hw, Machine machine)
      : hw_(std::move(hw)), machine_(std::move(machine)) {}

  const HwDescription& hw() const { return *hw_; }
  const Machine& machine() const { return machine_; }
  // One for each part of its result.
  std::expected<std::vector<Mapping>, Refusal> map(const Program& p, const Call& call);

 private:
  struct Known {
    std::vector<Plan> plans;
    Tiling tiling;
  };
  std::expected<Mapping, Refusal> map(const Program& p, const Call& call, Target part);
  std::expected<Known, Refusal> search(const Program& p, const Call& call, const std::shared_ptr<const Target>& target);

  std::shared_ptr<const HwDescription> hw_;
  Machine machine_;                                 // points into *hw_
  std::map<std::string, Known> known_;              // by kind of call
  std::map<std::string, std::vector<Plan>> likes_;  // by kind without its sizes and most of its numbers
  std::map<std::string, Refusal> refused_;          // by kind and names
};

}  // namespace dlc::map
