// Reading graph text whose constants and ops come from elsewhere. parse_graph() of graph.h is the common case.
//
//   GraphReader reader{.file = "net.dlct", .weights = [&](std::string_view name, const TensorType& type) {...}};
//   DLC_TRY(Graph g, reader.read(text));
#pragma once

#include "dlc/graph/graph.h"

namespace dlc {

struct GraphReader {
  std::string file;  // of messages
  // The constants whose elements are not in the text; the type is what the text says.
  std::function<std::optional<Tensor>(std::string_view name, const TensorType& type)> weights;
  std::shared_ptr<const RecordSet> records;  // what ops mean; null: the built-in ones

  Result<Graph> read(std::string_view text) const;
};

// The constants whose elements print() does not write, by the names that a reader asks for: those of a body have the
// node and the body before theirs ("5:then:w").
std::vector<std::pair<std::string, Tensor>> table_constants(const Graph& g);

}  // namespace dlc
