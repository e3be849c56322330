// Images read at given points, and put together from blocks.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<Values> grid_sample(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("needs an image and a grid");
  DLC_TRY(std::string mode, n.attr_string("mode", n.opset() < 20 ? "bilinear" : "linear"));
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  DLC_TRY(const std::string padding, n.attr_string("padding_mode", "zeros"));
  DLC_TRY(const int64_t align, n.attr_int("align_corners", 0));
  return n.emit_all("grid_sample", {n.in(0), n.in(1)},
                    {{"mode", mode}, {"padding", padding}, {"align_corners", Expr(align != 0)}});
}

Result<Values> roi_align(const NodeView& n) {
  if (!n.has(0) || !n.has(1) || !n.has(2)) return n.error("needs an image, regions and their images");
  DLC_TRY(const std::string mode, n.attr_string("mode", "avg"));
  DLC_TRY(const int64_t height, n.attr_int("output_height", 1));
  DLC_TRY(const int64_t width, n.attr_int("output_width", 1));
  DLC_TRY(const int64_t samples, n.attr_int("sampling_ratio", 0));
  DLC_TRY(const double scale, n.attr_float("spatial_scale", 1.0));
  DLC_TRY(const std::string coordinates,
          n.attr_string("coordinate_transformation_mode", n.opset() >= 16 ? "half_pixel" : "output_half_pixel"));
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return n.error(fmt::format("attribute 'coordinate_transformation_mode' is '{}'", coordinates));
  if (samples < 0) return n.error(fmt::format("attribute 'sampling_ratio' is {}", samples));
  Attrs attrs{{"height", Expr(height)},
              {"width", Expr(width)},
              {"scale", scale},
              {"half_pixel", Expr(coordinates == "half_pixel")}};
  ValueId counts = kNoValue;  // of the samples of each region, where the attribute does not say it
  attrs["samples"] = Expr(samples);
  if (samples == 0) {
    Attrs region = attrs;
    region.erase("samples");
    DLC_TRY(counts, n.emit("roi_samples", {n.in(1)}, std::move(region)));
    DLC_TRY(ValueId most, n.emit("reduce_max", {counts}, {{"axes", std::vector<Expr>{0, 1}}}));
    DLC_TRY(const ValueId none, n.scalar(kS64, 0));
    DLC_TRY(most, n.emit("max_n", {most, none}));  // of no regions
    constexpr int64_t kMostSamples = int64_t{1} << 20;
    DLC_TRY(const auto bound, n.bounds_of(most, "samples", {0, kMostSamples}));
    attrs["samples"] = bound[0];
  }
  attrs["mode"] = mode;
  return n.emit_all("roi_align", {n.in(0), n.in(1), n.in(2), counts}, std::move(attrs));
}

// The sizes are those of an image: batch, channels, and two or three more.
Result<Values> affine_grid(const NodeView& n) {
  DLC_TRY(const int64_t align, n.attr_int("align_corners", 0));
  DLC_TRY(const auto size, n.sizes(1, "size"));
  if (size.size() < 3 || n.rank(0) != 3) return n.error("the map needs rank 3, the size three numbers or more");
  const auto map = n.type(0).shape;  // a map for each image
  DLC_TRY(const ValueId maps, n.emit("reshape", {n.in(0)}, {{"shape", std::vector<Expr>{size[0], map[1], map[2]}}}));
  return n.emit_all("affine_grid", {maps},
                    {{"size", std::vector<Expr>(size.begin() + 2, size.end())}, {"align_corners", Expr(align != 0)}});
}

Result<Values> col2im(const NodeView& n) {
  if (n.rank(0) != 3) return n.error(fmt::format("the data has rank {}, 3 is needed", n.rank(0)));
  DLC_TRY(const auto image, n.sizes(1, "image_shape"));
  DLC_TRY(const auto block, n.sizes(2, "block_shape"));
  const size_t rank = image.size();
  if (block.size() != rank || rank == 0) return n.error("'image_shape' and 'block_shape' differ in length");
  DLC_TRY(const Window w, read_window(n, block, image));
  // [n, c * block, steps] as [n, c, block.., steps..]
  const auto in = n.type(0).shape;
  Expr taps(1);
  for (const Expr& k : block) taps = taps * k;
  std::vector<Expr> shape{in[0], floor_div(in[1], taps)};
  shape.insert(shape.end(), block.begin(), block.end());
  for (size_t i = 0; i < rank; ++i)
    shape.push_back(
        floor_div(image[i] + w.pad_lo[i] + w.pad_hi[i] - (w.kernel[i] - 1) * w.dilation[i] - 1, w.stride[i]) + 1);
  DLC_TRY(const ValueId x, n.emit("reshape", {n.in(0)}, {{"shape", shape}}));
  Attrs attrs = window_attrs(w, false);
  attrs["image"] = image;
  attrs["at"] = Expr(static_cast<int64_t>(2 + rank));
  return n.emit_all("col2im", {x}, std::move(attrs));
}

Result<Values> image_decoder(const NodeView& n) {
  return n.error("image files are not decoded", "give the model the pixels");
}

constexpr OpEntry kTable[] = {
    {"", "GridSample", grid_sample, "tt"},    {"com.microsoft", "GridSample", grid_sample, "tt"},
    {"", "ImageDecoder", image_decoder, "t"}, {"", "AffineGrid", affine_grid, "tt"},
    {"", "RoiAlign", roi_align, "ttt"},       {"", "Col2Im", col2im, "ttt"},
};

}  // namespace

std::span<const OpEntry> vision_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
