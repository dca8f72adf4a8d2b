//===- RandomModel.cpp - the model of a random program --------------------===//
#include "RandomModel.h"
#include "llvm/ADT/STLExtras.h"

using namespace stage;

/// Values that the layers carry beside h.
constexpr unsigned mostCarried = 3;

int64_t RandomMesh::sizeOf(const std::string &axis) const { return sizes[llvm::find(axes, axis) - axes.begin()]; }

std::string RandomMesh::someAxes(Random &random, unsigned most, int64_t *product) const {
  std::vector<std::string> left, chosen;
  for (const std::string &axis : axes)
    if (axis != pipeline)
      left.push_back(axis);
  for (unsigned n = random.below(most) + 1; n && !left.empty(); --n) {
    unsigned which = random.below(left.size());
    chosen.push_back(left[which]);
    if (product)
      *product *= sizeOf(left[which]);
    left.erase(left.begin() + which);
  }
  if (chosen.empty())
    return "()";
  return chosen.size() == 1 ? chosen[0] : "(" + llvm::join(chosen, ", ") + ")";
}

static std::string shape(const std::vector<std::string> &dims) { return "[" + llvm::join(dims, ", ") + "]"; }
static std::string indices(const std::vector<std::string> &dims) { return llvm::StringRef(shape(dims)).lower(); }

/// A parameter, or now and then a buffer, which may be one that is used already, here or outside of the layers.
std::string RandomModel::newParam(const Dims &dims) {
  std::vector<std::string> known;
  for (const Value &param : visibleParams)
    if (param.dims == dims)
      known.push_back(param.name);
  if (!known.empty() && random.chance(30))
    return random.pick(known);
  std::string name = fresh("w");
  say((random.chance(8) ? "buffer " : "param ") + name + ": " + shape(dims) + ";");
  params.push_back({name, dims});
  visibleParams.push_back({name, dims});
  return name;
}

/// A table that is read by ids; the output may read it again.
std::string RandomModel::newTable() { return table = newParam({"V", "D"}); }

/// A dim of the pool that `dims` has not; empty if there is none.
std::string RandomModel::otherDim(const Dims &dims) {
  std::vector<std::string> pool;
  for (const char *name : {"D", "F", "K"})
    if (!llvm::is_contained(dims, name))
      pool.push_back(name);
  return pool.empty() ? "" : random.pick(pool);
}

/// A shape, with an axis on a dim perhaps.
std::string RandomModel::annotation(const Dims &dims) {
  std::string text;
  bool used = false;
  for (const std::string &dim : dims) {
    text += (text.empty() ? "" : ", ") + dim;
    if (!used && random.chance(40)) {
      text += "@" + (random.chance(25) ? std::string("()") : mesh.someAxes(random, 2));
      used = true;
    }
  }
  return ": [" + text + "]" + (!used && random.chance(50) ? " replicated(" + random.pick(mesh.axes) + ")" : "");
}

void RandomModel::define(const std::string &expression, Dims dims, std::vector<Value> &values) {
  std::string name = fresh("v");
  say("let " + name + (random.chance(8) ? annotation(dims) : "") + " = " + expression + ";");
  named.push_back({name, dims});
  values.push_back({name, std::move(dims)});
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// `out[...] = sum[reduced](x * w)`; its name.
std::string RandomModel::contract(const Value &x, const std::string &reduced, const Dims &out, const std::string &w,
                                  const Dims &wide) {
  std::string name = fresh("v");
  say("let " + name + indices(out) + " = sum" + indices({reduced}) + "(" + x.name + indices(x.dims) + " * " + w +
      indices(wide) + ");");
  return name;
}

/// A contraction with a parameter, to one dim or two at once.
void RandomModel::makeContraction(const Value &x, std::vector<Value> &values) {
  std::string reduced = x.dims.back(), made = otherDim(x.dims);
  if (made.empty() || reduced == "B" || reduced == "S")
    return;
  Dims out(x.dims.begin(), x.dims.end() - 1);
  if (random.chance(20)) { // a head of its own
    std::string second = otherDim({x.dims[0], reduced, made, "B"});
    if (!second.empty() && !llvm::is_contained(x.dims, second) && second != made) {
      Dims wide = {reduced, made, second};
      if (random.chance(50)) { // whose parameter has them as one dim
        std::string w = fresh("w"), fused = "(" + made + " " + second + ")", name = fresh("v");
        say("param " + w + ": [" + reduced + ", " + fused + "];");
        out.push_back(made);
        out.push_back(second);
        say("let " + name + indices(out) + " = sum" + indices({reduced}) + "(" + x.name + indices(x.dims) + " * " + w +
            "[" + llvm::StringRef(reduced + ", " + fused).lower() + "]);");
        values.push_back({name, out});
        return;
      }
      std::string w = newParam(wide);
      out.push_back(made);
      out.push_back(second);
      values.push_back({contract(x, reduced, out, w, wide), out});
      return;
    }
  }
  Dims wide = random.chance(80) ? Dims{reduced, made} : Dims{made, reduced};
  std::string w = newParam(wide);
  out.push_back(made);
  values.push_back({contract(x, reduced, out, w, wide), out});
}

/// Two branches that lead back to where they came from: one reduction for both.
void RandomModel::makeParallel(const Value &x, std::vector<Value> &values) {
  std::string reduced = x.dims.back();
  if (reduced == "B" || reduced == "S")
    return;
  std::vector<std::string> branches;
  for (unsigned i = 0; i < 2; ++i) {
    std::string made = otherDim(x.dims);
    if (made.empty())
      return;
    Dims out(x.dims.begin(), x.dims.end() - 1);
    out.push_back(made);
    std::string up = newParam({reduced, made}), down = newParam({made, reduced});
    Value inner{contract(x, reduced, out, up, {reduced, made}), out};
    if (random.chance(60)) {
      std::string name = fresh("v");
      say("let " + name + " = act(" + inner.name + ");");
      inner.name = name;
    }
    branches.push_back(contract(inner, made, x.dims, down, {made, reduced}));
  }
  define(x.name + " + " + branches[0] + " + " + branches[1], x.dims, values);
}

/// Neighbours along S, with weights.
void RandomModel::makeWindow(const Value &x, std::vector<Value> &values) {
  if (x.dims.size() != 3 || x.dims[0] != "B" || x.dims[1] != "S")
    return;
  std::string width = otherDim(x.dims);
  if (width.empty())
    return;
  const std::vector<std::string> names = {"ahead", "back"};
  bool isDeep = random.chance(50);
  std::string op = random.pick(names), w = newParam(isDeep ? Dims{width, x.dims[2]} : Dims{width});
  define(op + (isDeep ? "_deep(" : "(") + x.name + ", " + w + ")", x.dims, values);
}

/// A part of a dim, or one position of it.
void RandomModel::makeSlice(const Value &x, std::vector<Value> &values) {
  if (x.dims.size() < 2)
    return;
  unsigned which = 1 + random.below(x.dims.size() - 1);
  const std::string &dim = x.dims[which];
  std::string subscripts;
  for (unsigned d = 0; d < which; ++d)
    subscripts += "0.." + x.dims[d] + ", ";
  switch (random.below(3)) {
  case 0: { // a table that is longer than the dim, as learned positions are
    std::string w = fresh("w");
    say("param " + w + ": [" + dim + " + " + std::to_string(1 + random.below(3)) + "];");
    if (which == x.dims.size() - 1 && random.chance(60))
      return define(x.name + " + " + w + "[0.." + dim + "]", x.dims, values);
    std::string y = fresh("v"), name = fresh("v");
    say("let " + y + " = " + w + "[1.." + dim + " + 1];");
    say("let " + name + indices(x.dims) + " = " + x.name + indices(x.dims) + " * " + y + indices({dim}) + ";");
    values.push_back({name, x.dims});
    return;
  }
  case 1: { // one position
    Dims out = x.dims;
    out.erase(out.begin() + which);
    return define(x.name + "[" + subscripts + (random.chance(50) ? "0" : dim + " - 1") + "]", out, values);
  }
  default: { // all but the first, reduced at once as the rest has no name
    Dims out = x.dims;
    out.erase(out.begin() + which);
    std::string y = fresh("v"), name = fresh("v");
    say("let " + y + " = " + x.name + "[" + subscripts + (random.chance(70) ? "1.." + dim : "0.." + dim + " - 1") +
        "];");
    say("let " + name + indices(out) + " = mean" + indices({dim}) + "(" + y + indices(x.dims) + " * " + y +
        indices(x.dims) + ");");
    values.push_back({name, out});
  }
  }
}

/// Two dims as one, and apart again.
void RandomModel::makeReshape(const Value &x, std::vector<Value> &values) {
  if (x.dims.size() < 2)
    return;
  unsigned outer = random.below(x.dims.size() - 1);
  bool isTurned = random.chance(20); // the inner one first: no view
  auto merged = [&](bool withSizes) {
    std::string text;
    for (unsigned d = 0; d < x.dims.size(); ++d) {
      std::string index = llvm::StringRef(x.dims[d]).lower();
      std::string next = d == outer ? llvm::StringRef(x.dims[d + 1]).lower() : "";
      text += text.empty() ? "" : ", ";
      if (withSizes)
        text += index + (random.chance(70) || d == outer || d == outer + 1 ? ": " + x.dims[d] : "");
      else if (d == outer)
        text += isTurned ? "(" + next + " " + index + ")" : "(" + index + " " + next + ")";
      else
        text += index;
      d += !withSizes && d == outer;
    }
    return "[" + text + "]";
  };
  std::string whole = fresh("v"), inner = fresh("v"), name = fresh("v");
  say("let " + whole + merged(false) + " = " + x.name + indices(x.dims) + ";");
  say("let " + inner + " = " + (random.chance(50) ? "act(" : "bend(") + whole + ");");
  say("let " + name + merged(true) + " = " + inner + merged(false) + ";");
  named.push_back({name, x.dims});
  values.push_back({name, x.dims});
}

/// Two values, or a value and a single position, along a dim; and a part of that, or a mean.
void RandomModel::makeConcat(const Value &x, const Value &y, std::vector<Value> &values) {
  if (x.dims.size() < 2)
    return;
  unsigned which = 1 + random.below(x.dims.size() - 1);
  const std::string &dim = x.dims[which];
  std::string at = indices(x.dims), first = x.name + at, second = y.name + at;
  if (which + 1 < x.dims.size() && random.chance(40))
    second = newParam({x.dims.back()}) + indices({x.dims.back()});
  if (random.chance(50))
    std::swap(first, second);
  std::string whole = fresh("v");
  say("let " + whole + at + " = concat" + indices({dim}) + "(" + first + ", " + second +
      (random.chance(30) ? ", " + first : "") + ");");
  if (random.chance(50)) {
    std::string subscripts;
    for (unsigned d = 0; d < which; ++d)
      subscripts += "0.." + x.dims[d] + ", ";
    return define(whole + "[" + subscripts + "0.." + dim + "]", x.dims, values);
  }
  Dims out = x.dims;
  out.erase(out.begin() + which);
  std::string name = fresh("v");
  say("let " + name + indices(out) + " = mean" + indices({dim}) + "(" + whole + at + " * " + whole + at + ");");
  values.push_back({name, out});
}

void RandomModel::makeManyUses(const Value &x, std::vector<Value> &values) {
  std::string w = newParam({x.dims.back()}), sum = x.name;
  for (unsigned n = 60 + random.below(10); n; --n)
    sum += " + " + x.name + (random.chance(50) ? " / 40" : " * " + w);
  define("calm(" + sum + ")", x.dims, values);
}

/// Tokens go to one target each, or to two, where a product of its own, or a vector, is applied to them, and come back.
/// Slots are as many as tokens that are spread equally take, or as there are tokens.
void RandomModel::makeRouted(const Value &x, std::vector<Value> &values) {
  if (x.dims != Dims{"B", "S", "D"})
    return;
  bool isTwice = random.chance(50);
  std::string target = random.chance(70) ? "K" : "F", slots = std::string(isTwice ? "2 * B" : "B") + " * S";
  if (random.chance(60))
    slots += " / " + target;
  std::string to = fresh("i"), sent = fresh("v"), made = fresh("v");
  say("let " + to + " = " + (isTwice ? "choose_two(" : "choose(") + x.name + ");");
  say("let " + sent + " = " + (isTwice ? "send_two(" : "send(") + x.name + ", " + to + ", " + target + ", " + slots +
      ");");
  std::string name = fresh("v"), at = llvm::StringRef(target).lower(), w;
  switch (random.below(3)) {
  case 0:
    made = sent;
    break;
  case 1:
    w = newParam({target, "D"});
    say("let " + made + "[" + at + ", c, d] = " + sent + "[" + at + ", c, d] * " + w + "[" + at + ", d];");
    break;
  default: {
    std::string inner = target == "K" ? "F" : "K", index = llvm::StringRef(inner).lower(),
                up = newParam({target, "D", inner}), down = newParam({target, inner, "D"}), middle = fresh("v");
    say("let " + middle + "[" + at + ", c, " + index + "] = sum[d](" + sent + "[" + at + ", c, d] * " + up + "[" + at +
        ", d, " + index + "]);");
    say("let " + made + "[" + at + ", c, d] = sum[" + index + "](" + middle + "[" + at + ", c, " + index + "] * " +
        down + "[" + at + ", " + index + ", d]);");
  }
  }
  if (isTwice) // each choice with a weight that is trained
    say("let " + name + " = fetch_two(" + made + ", " + to + ", shares(" + x.name + "));");
  else
    say("let " + name + " = fetch(" + made + ", " + to + ");");
  named.push_back({name, x.dims});
  values.push_back({name, x.dims});
}

/// One statement that makes a new value from those in sight.
void RandomModel::makeStatement(std::vector<Value> &values) {
  Value x = random.chance(60) ? values.back() : random.pick(values);
  if (x.dims.empty())
    return;
  if (routes && random.chance(35))
    return makeRouted(x, values);
  std::vector<Value> alike;
  for (const Value &value : values)
    if (value.dims == x.dims)
      alike.push_back(value);
  switch (random.below(18)) {
  case 0:
  case 1:
  case 2:
    return makeContraction(x, values);
  case 3: {
    std::string sum = x.name + " / 2 + " + random.pick(alike).name;
    if (random.chance(40))
      sum = x.name + " + " + random.pick(alike).name + " + " + random.pick(alike).name;
    return define(sum, x.dims, values);
  }
  case 4:
    return define(x.name + " * " + random.pick(alike).name, x.dims, values);
  case 5: {
    std::string w = newParam({x.dims.back()});
    return define(x.name + (random.chance(50) ? " + " : " * ") + w, x.dims, values);
  }
  case 6: {
    const std::vector<std::string> names = {"act", "bend", "drop"};
    return define(random.pick(names) + "(" + x.name + ")", x.dims, values);
  }
  case 7: {
    const std::vector<std::string> names = {"soften", "blend", "pool", "turn"};
    return define(random.pick(names) + "(" + x.name + ")", x.dims, values);
  }
  case 8: {
    if (x.dims.size() < 2)
      return;
    if (random.chance(50))
      return define("norm(" + x.name + ", " + newParam({x.dims.back()}) + ")", x.dims, values);
    return define("gated(" + x.name + ", " + random.pick(alike).name + ")", x.dims, values);
  }
  case 9: {
    if (x.dims.size() < 3)
      return;
    Dims out(x.dims.begin(), x.dims.end() - 1);
    const std::vector<std::string> names = {"highest", "exps"};
    return define(random.pick(names) + "(" + x.name + ")", out, values);
  }
  case 10: { // a reduction or a product of activations by a formula in place
    if (x.dims.size() < 2)
      return;
    unsigned which = random.below(x.dims.size());
    Dims out = x.dims;
    std::string reduced = out[which];
    out.erase(out.begin() + which);
    std::string name = fresh("v"), y = random.pick(alike).name, at = indices(x.dims);
    say("let " + name + indices(out) + " = " + (random.chance(30) ? "mean" : "sum") + indices({reduced}) + "(" +
        x.name + at + (random.chance(60) ? " * " + y + at : "") + ");");
    values.push_back({name, out});
    return;
  }
  case 11:
    return makeParallel(x, values);
  case 12:
    return makeWindow(x, values);
  case 13:
    return makeSlice(x, values);
  case 15:
    return makeReshape(x, values);
  case 16:
    return makeConcat(x, random.pick(alike), values);
  case 14: { // each token goes to a row of a table
    if (random.chance(5))
      return makeManyUses(x, values);
    if (x.dims.back() != "D" || x.dims.size() < 2)
      return;
    std::string i = fresh("i");
    say("let " + i + " = choose(" + x.name + ");");
    return define("find(" + i + ", " + newParam({"V", "D"}) + ")", x.dims, values);
  }
  default:
    if (x.dims.size() != 3 || x.dims[0] != "B" || x.dims[1] != "S")
      return;
    if (random.chance(50))
      return define("behind(" + x.name + ")", x.dims, values);
    return define("attend(" + x.name + ", " + random.pick(alike).name + ")", x.dims, values);
  }
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

void RandomModel::make() {
  say("dim B, S;");
  std::vector<Value> values;
  if (random.chance(50)) {
    say("input ids: i32[B, S];");
    values.push_back({fresh("v"), {"B", "S", "D"}});
    say("let " + values.back().name + " = find(ids, " + newTable() + ");");
  } else {
    say("input x0: [B, S, D];");
    values.push_back({"x0", {"B", "S", "D"}});
  }
  for (unsigned n = random.below(4); n; --n)
    makeStatement(values);
  if (hasLayers)
    makeLayers(values);
  for (unsigned n = random.below(3); n; --n)
    makeStatement(values);
  // An output layer tied to the embedding: a parameter of two stages.
  if (!table.empty() && values.back().dims == Dims{"B", "S", "D"} && random.chance(40))
    values.push_back({contract(values.back(), "D", {"B", "S", "V"}, table, {"V", "D"}), {"B", "S", "V"}});
  makeLoss(values);
}

/// Every model has something to train.
void RandomModel::makeLoss(const std::vector<Value> &values) {
  std::string text;
  for (unsigned n = random.chance(25) ? 2 + random.below(2) : 1, i = 0; i < n; ++i) {
    const Value &x = i ? random.pick(values) : values.back();
    std::string scale = x.dims.empty() ? "" : newParam({x.dims.back()});
    text += (i ? " + " : "") + ("loss(" + x.name) + (scale.empty() ? "" : " * " + scale) + ")" + (i ? " / 3" : "");
  }
  say("return " + text + ";");
}

void RandomModel::makeLayers(std::vector<Value> &values) {
  Value start = random.pick(values);
  unsigned numCarried = random.chance(25) ? 1 + random.below(mostCarried) : 0;
  int64_t iterations =
      mesh.stages > 1 ? mesh.stages * mesh.chunks * (1 + random.below(2)) : 1 + random.below(numCarried ? 5 : 3);
  carriedDims = start.dims;
  std::vector<Value> inside;
  say("var h = " + start.name + ";");
  // Values that follow h, some iterations behind, or change places.
  for (unsigned i = 0; i < numCarried; ++i) {
    std::vector<std::string> alike;
    for (const Value &value : values)
      if (value.dims == start.dims)
        alike.push_back(value.name);
    say("var g" + std::to_string(i) + " = " + random.pick(alike) + ";");
    inside.push_back({"g" + std::to_string(i), start.dims});
  }
  bool differ = iterations > 1 && random.chance(35);
  say(std::string("repeat layers[") + (differ ? "i in 0.." : "") + std::to_string(iterations) + "] {");
  indent = "    ";
  size_t numOutside = visibleParams.size();
  // Used in every iteration. A pipeline refuses most.
  for (unsigned n = random.chance(mesh.pipeline.empty() ? 35 : 5) ? 1 + random.below(2) : 0; n; --n)
    inside.push_back(random.pick(values));
  inside.push_back({"h", start.dims});
  if (differ) {
    for (unsigned n = random.below(3); n; --n)
      makeStatement(inside);
    say("if " + someLayers(iterations) + " {");
    size_t numBefore = visibleParams.size();
    makeLayer(inside, start.dims, numCarried);
    visibleParams.resize(numBefore);
    say("} else {");
    makeLayer(inside, start.dims, numCarried);
    say("}");
  } else {
    makeLayer(inside, start.dims, numCarried);
  }
  indent = "  ";
  say("}");
  visibleParams.resize(numOutside);
  for (unsigned i = 0; i < numCarried; ++i)
    values.push_back({"g" + std::to_string(i), start.dims});
  if (!numCarried || random.chance(70))
    values.push_back({"h", start.dims});
}

/// A condition that the first layer meets and another does not.
std::string RandomModel::someLayers(int64_t iterations) {
  switch (random.below(3)) {
  case 0:
    return "i < " + std::to_string(1 + random.below(iterations - 1));
  case 1:
    return "i % " + std::to_string(2 + random.below(iterations - 1)) + " == 0";
  default: {
    std::string pattern = "1";
    for (int64_t n = 1; n < iterations; ++n)
      pattern += n > 1 && random.chance(50) ? std::string(", 1") : std::string(", 0");
    return "[" + pattern + "][i] == 1";
  }
  }
}

/// What is in sight and what the layers carry, on to the next.
void RandomModel::makeLayer(std::vector<Value> inside, const Dims &carried, unsigned numCarried) {
  for (unsigned n = 1 + random.below(5); n; --n)
    makeStatement(inside);
  std::vector<Value> alike;
  for (const Value &value : inside)
    if (value.dims == carried && value.name[0] != 'g')
      alike.push_back(value);
  const Value &chosen = alike.back();
  std::string first = fresh("v");
  bool isRing = random.chance(30);
  if (numCarried)
    say("let " + first + " = " + (isRing ? "g0" : "h") + ";");
  for (unsigned i = 0; i + 1 < numCarried; ++i)
    if (!random.chance(15)) // one that does not change
      say("g" + std::to_string(i) + " = g" + std::to_string(i + 1) + ";");
  if (numCarried)
    say("g" + std::to_string(numCarried - 1) + " = " + first + ";");
  // What is carried stays bounded, however many layers there are.
  if (chosen.name == "h" || random.chance(50))
    say("h = calm(" + chosen.name + ") + h / 2;");
  else
    say("h = calm(" + chosen.name + ");");
}
