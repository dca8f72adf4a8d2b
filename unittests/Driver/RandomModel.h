//===- RandomModel.h - the model of a random program -----------*- C++ -*-===//
//
// Statements of random ops on values of the dims B, S, D, F, K and V: contractions,
// element-wise ops, norms, reductions, attention, windows, slices with offsets, dims taken
// apart and put together, concatenations, routes to rows of a table, parallel blocks, values
// that are used many times, annotations; and layers, which carry one value or several that
// shift, use values from outside, and are of two kinds perhaps.
// Parameters are used once or several times, by layers and outside of them.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_UNITTESTS_DRIVER_RANDOMMODEL_H
#define STAGE_UNITTESTS_DRIVER_RANDOMMODEL_H

#include "Random.h"

namespace stage {

/// What the model must know of the mesh.
struct RandomMesh {
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;
  std::string pipeline; ///< The axis of the pipeline; empty: none.
  int64_t stages = 1, chunks = 1;

  int64_t sizeOf(const std::string &axis) const;
  /// Some axes but for that of the pipeline, in any order, as a rule names them; `product` is multiplied by their
  /// sizes.
  std::string someAxes(Random &random, unsigned most, int64_t *product = nullptr) const;
};

class RandomModel {
public:
  struct Value {
    std::string name;
    std::vector<std::string> dims;
  };

  /// With `routes` many statements send tokens to targets and back.
  RandomModel(Random &random, const RandomMesh &mesh, bool hasLayers, bool routes)
      : random(random), mesh(mesh), hasLayers(hasLayers), routes(routes) {}

  /// Writes the statements into `lines`.
  void make();

  std::vector<std::string> lines;
  std::vector<Value> params, named;
  std::vector<Value> visibleParams;     ///< Those that a statement may use.
  std::vector<std::string> carriedDims; ///< Of the layers' values.

private:
  using Dims = std::vector<std::string>;

  std::string fresh(const char *prefix) { return prefix + std::to_string(counter++); }
  void say(const std::string &line) { lines.push_back(indent + line); }
  std::string newParam(const Dims &dims);
  std::string newTable();
  std::string otherDim(const Dims &dims);
  std::string annotation(const Dims &dims);
  void define(const std::string &expression, Dims dims, std::vector<Value> &values);
  void makeStatement(std::vector<Value> &values);
  void makeContraction(const Value &x, std::vector<Value> &values);
  void makeParallel(const Value &x, std::vector<Value> &values);
  void makeWindow(const Value &x, std::vector<Value> &values);
  void makeSlice(const Value &x, std::vector<Value> &values);
  void makeReshape(const Value &x, std::vector<Value> &values);
  void makeConcat(const Value &x, const Value &y, std::vector<Value> &values);
  void makeRouted(const Value &x, std::vector<Value> &values);
  void makeManyUses(const Value &x, std::vector<Value> &values);
  std::string contract(const Value &x, const std::string &reduced, const Dims &out, const std::string &w,
                       const Dims &wide);
  void makeLayers(std::vector<Value> &values);
  std::string someLayers(int64_t iterations);
  void makeLayer(std::vector<Value> inside, const Dims &carried, unsigned numCarried);
  void makeLoss(const std::vector<Value> &values);

  Random &random;
  const RandomMesh &mesh;
  const bool hasLayers;
  const bool routes;
  std::string indent = "  ";
  std::string table;
  unsigned counter = 0;
};

} // namespace stage

#endif // STAGE_UNITTESTS_DRIVER_RANDOMMODEL_H
