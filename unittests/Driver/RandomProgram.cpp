//===- RandomProgram.cpp - programs, strategies and meshes by chance ------===//
#include "RandomProgram.h"
#include "RandomModel.h"
#include "llvm/ADT/STLExtras.h"
#include <map>
#include <numeric>

using namespace stage;

namespace {
/// Every operator that a program may use; most take any leading indices.
const char *const operators[] = {
    "op act(x: [...]) -> [...] = x * sigmoid(x);",
    "op bend(x: [...]) -> [...] = tanh(x) + x / 4 { saves x; }",
    "op calm(x: [...]) -> [...] = tanh(x) { saves result; }",
    "op gated(x: [...], y: [...]) -> [...] = tanh(x) * y { saves x, y; }",
    "op norm(x: [..., n], g: [n]) -> [..., n] = x * rsqrt(mean[n](x * x) + 0.1) * g { whole n; saves x, g; }",
    "op soften(x: [..., n]) -> [..., n] { let w = exp(tanh(x)); result = w / sum[n](w); whole n; saves x; }",
    "op drop(x: [...]) -> [...] = x * random(0.75) { saves mask: u8[...]; }",
    "op blend(x: [..., n]) -> [..., n] { opaque; whole n; }",
    "op pool(x: [..., n]) -> [..., n] { opaque; }",
    "op highest(x: [..., n]) -> [...] = max[n](x);",
    "op exps(x: [..., n]) -> [...] = sum[n](exp(tanh(x)));",
    "op turn(x: [..., n]) -> [..., n] = where(n < size(n) / 2, x[..., n], 0 - x[..., n]) * cos(n) { whole n; }",
    "op behind(x: [b, s, d]) -> [b, s, d] { let w = where(s > 0, x[b, max(s - 1, 0), d], 0); result = x + w / 2; whole "
    "s; }",
    "op attend(q: [b, s, d], k: [b, t, d]) -> [b, s, d] { let w = where(t <= s, exp(tanh(sum[d](q * k))), 0); "
    "result = sum[t](w * k) / sum[t](w); whole d; fold t carrying lse: f32[b, s] = log(sum[t](w)); mask causal(s, t); "
    "class = attention; flops = 4 * b * area * d; "
    "saves q, k, result; backward flops = 8 * b * area * d, recomputing 2 * b * area * d; }",
    "op ahead(x: [b, s, d], w: [k]) -> [b, s, d] = sum[k](where(s + k < size(s), x[b, s + k, d], 0) * w) { whole s; }",
    "op ahead_deep(x: [b, t, n], w: [m, n]) -> [b, t, n] = sum[m](where(t + m < size(t), x[b, t + m, n], 0) * w) { "
    "whole t; }",
    "op back(x: [e, s, d], w: [b]) -> [e, s, d] { let y = sum[b](where(s >= b, x[e, s - b, d], 0) * w); result = y + "
    "x; whole s; }",
    "op back_deep(x: [b, s, k], w: [t, k]) -> [b, s, k] = sum[t](where(t <= s, x[b, s - t, k], 0) * w) { whole s; }",
    "op choose(x: [..., n]) -> i32[...] { opaque; whole n; }",
    "op find(ids: i32[...], table: [v, n]) -> [..., n] = table[ids, n];",
    "op choose_two(x: [..., n]) -> i32[..., 2] { opaque; whole n; }",
    "op shares(x: [..., n]) -> [..., 2] { opaque; whole n; }",
    "op send(t: [b, s, n], to: i32[b, s], targets: size x, slots: size c) -> [x, c, n] = t { routes b, s -> x, c; }",
    "op send_two(t: [s, b, n], to: i32[s, b, j], targets: size x, slots: size c) -> [x, c, n] = t { routes s, b, j -> "
    "x, c; }",
    "op fetch(y: [x, c, n], to: i32[b, s]) -> [b, s, n] = y { routes x, c -> b, s; }",
    "op fetch_two(y: [x, c, n], to: i32[b, s, j], w: [b, s, j]) -> [b, s, n] = sum[j](y * w) { routes b, s, j -> x, c; "
    "}",
    "op loss(x: [...]) -> f32[] = mean[...](x * x + x / 2);",
};

class Generator {
public:
  Generator(uint64_t seed, bool routes) : random(seed), model(random, mesh, hasLayers, routes) {
    // Nothing is drawn, so that programs of other seeds stay as they are.
    if (seed % 5 == 2)
      schedule = schedule == interleaved ? "interleaved(v = 2, overlapped = true)" : "in_pairs";
  }

  std::vector<std::string> run() {
    std::vector<std::pair<std::string, std::string>> shardRules = makeRules();
    model.make();
    // What nothing uses is an error: only dims, ops and axes that are used are declared.
    std::vector<std::string> rules;
    for (auto &[dim, rule] : shardRules)
      if (isUsed(dim))
        rules.push_back(rule);
    for (const std::string &rule : makePatternRules())
      rules.push_back(rule);
    if (!mesh.pipeline.empty())
      rules.push_back("pipeline layers over " + mesh.pipeline + " { schedule = " + schedule + "; }");
    if (random.chance(6))
      rules.push_back("keep gathered over " + random.pick(mesh.axes) + ";");
    if (random.chance(25))
      rules.push_back(makePartition(shardRules));
    std::vector<std::string> kept, parameters;
    for (unsigned i = 0; i < mesh.axes.size(); ++i) {
      bool isNamed = llvm::any_of(rules, [&](const std::string &rule) { return hasWord(rule, mesh.axes[i]); });
      if (!isNamed && !random.chance(5))
        continue;
      kept.push_back(mesh.axes[i]);
      parameters.push_back(mesh.axes[i] + " = " + std::to_string(mesh.sizes[i]));
    }
    if (!kept.empty() && random.chance(25))
      rules.push_back(makeReduction(kept));
    makeSchedule();
    for (const char *op : operators)
      if (isUsed(getName(op)))
        lines.push_back(op);
    size_t begin = lines.size();
    std::vector<std::string> used;
    for (const auto &[name, size] : dims)
      if (name != "B" && name != "S" && isUsed(name))
        used.push_back(name + " = " + std::to_string(size));
    lines.push_back("model M(" + llvm::join(used, ", ") + ") {");
    lines.insert(lines.end(), model.lines.begin(), model.lines.end());
    lines.push_back("}");
    lines.push_back("strategy s(" + llvm::join(parameters, ", ") + ") {");
    if (!kept.empty())
      lines.push_back("  mesh (" + llvm::join(kept, ", ") + ");");
    for (const std::string &rule : rules)
      lines.push_back("  " + rule);
    size_t endOfRules = lines.size();
    lines.push_back("}");
    makeJob();
    rename(begin);
    if (random.chance(35)) // chosen last: the rest of a program is as without it
      lines.insert(lines.begin() + endOfRules, makeLayerRule("recompute"));
    if (isUsed("attend") && !kept.empty() && random.chance(50))
      lines.insert(lines.begin() + endOfRules, makeRing(kept, shardRules));
    if (!kept.empty() && random.chance(25))
      lines.insert(lines.begin() + endOfRules,
                   "  overlap communication" + (random.chance(50) ? "" : " " + random.pick(kept)) + " with compute;");
    if (random.chance(15))
      lines.insert(lines.begin() + endOfRules, makeLayerRule("offload"));
    if (!kept.empty() && random.chance(20))
      lines.insert(lines.begin() + endOfRules,
                   "  overlap communication" + (random.chance(70) ? "" : " " + random.pick(kept)) + " with products;");
    if (random.chance(10))
      lines.insert(lines.begin() + endOfRules,
                   random.chance(50) ? "  offload optimizer to host;" : "  offload parameters to host;");
    if (random.chance(60))
      for (std::string &line : lines)
        if (llvm::StringRef(line).startswith("  pipeline layers over "))
          line.insert(line.rfind('}'), "messages = blocking; ");
    // Ranks of other axes than the pipeline's may hold what is sent whole, and then they share it.
    if (!kept.empty() && random.chance(50))
      for (std::string &line : lines)
        if (llvm::StringRef(line).startswith("  pipeline layers over "))
          if (std::string axis = random.pick(kept); !llvm::StringRef(line).contains(" over " + axis + " "))
            line.insert(line.rfind('}'), "scatter_gather = " + axis + "; ");
    return std::move(lines);
  }

private:
  static std::string getName(llvm::StringRef op) { return op.drop_front(3).split('(').first.str(); }
  /// True if the model has the word, but for its open dims.
  bool isUsed(llvm::StringRef word) const {
    return llvm::any_of(model.lines, [&](const std::string &line) {
      return !llvm::StringRef(line).startswith("  dim") && hasWord(line, word);
    });
  }

  /// Calls dims what ops call their indices, and indices of formulas in place what others are called: names are the
  /// program's own, and mean nothing elsewhere.
  void rename(size_t begin) {
    std::map<std::string, std::string> names;
    auto give = [&](std::vector<std::string> from, std::vector<std::string> pool) {
      for (const std::string &name : from) {
        unsigned which = random.below(pool.size());
        names[name] = pool[which];
        pool.erase(pool.begin() + which);
      }
    };
    if (random.chance(50))
      give({"S", "D", "F", "K", "V"}, {"n", "m", "d", "s", "t", "e", "b", "v", "k", "g", "x"});
    bool isPermuted = random.chance(30);
    if (isPermuted)
      give({"b", "s", "d", "f", "k", "v"}, {"n", "m", "d", "s", "t", "e", "b", "v", "k", "g", "x"});
    for (size_t i = begin; i < lines.size(); ++i) {
      bool isFormula =
          llvm::StringRef(lines[i]).contains("] = ") && llvm::StringRef(lines[i]).ltrim().startswith("let ");
      lines[i] = replaceWords(lines[i], [&](llvm::StringRef word) {
        auto it = names.find(word.str());
        bool isIndex = word.size() == 1 && word[0] >= 'a' && word[0] <= 'z';
        return it == names.end() || (isIndex && !isFormula) ? word.str() : it->second;
      });
    }
  }

  //===--- mesh and rules -------------------------------------------------===//

  RandomMesh chooseMesh() {
    RandomMesh mesh;
    const std::vector<int64_t> choices = {1, 2, 2, 2, 3, 4, 6};
    std::vector<std::string> names = {"xa", "xb", "xc", "xp"};
    int64_t ranks = 1;
    unsigned count = random.below(4) + 1;
    hasLayers = random.chance(60);
    bool isPipelined = hasLayers && random.chance(45);
    for (unsigned i = 0; i < count; ++i) {
      unsigned which = random.below(names.size());
      std::string name = names[which];
      if (name == "xp" && !isPipelined)
        continue;
      names.erase(names.begin() + which);
      int64_t size = random.pick(choices);
      if (ranks * size > 12)
        size = 1;
      ranks *= size;
      mesh.axes.push_back(name);
      mesh.sizes.push_back(size);
      if (name == "xp")
        mesh.pipeline = name, mesh.stages = size;
    }
    if (mesh.axes.empty()) {
      mesh.axes.push_back("xa");
      mesh.sizes.push_back(2);
    }
    if (schedule == interleaved && mesh.stages == 1)
      schedule = "in_turn";
    mesh.chunks = schedule == interleaved ? 2 : 1;
    return mesh;
  }

  /// Rules with the dims that they are for; decides the sizes of all dims.
  std::vector<std::pair<std::string, std::string>> makeRules() {
    std::vector<std::pair<std::string, std::string>> rules;
    // Two dims of one value over one axis are refused; most programs give each axis to one dim.
    RandomMesh left = mesh;
    int64_t everyAxis = 1;
    for (const std::string &axis : mesh.axes)
      everyAxis *= axis == mesh.pipeline ? 1 : mesh.sizeOf(axis);
    bool isSharing = random.chance(12);
    for (const char *name : {"B", "S", "D", "F", "K", "V"}) {
      int64_t product = 1;
      bool isMirrored = false;
      if (random.chance(name == std::string("B") ? 50 : 40)) {
        std::string over = left.someAxes(random, 2, &product);
        for (size_t i = left.axes.size(); !isSharing && i-- > 0;)
          if (hasWord(over, left.axes[i])) {
            left.axes.erase(left.axes.begin() + i);
            left.sizes.erase(left.sizes.begin() + i);
          }
        isMirrored = over[0] != '(' && name != std::string("B") && random.chance(15);
        if (over != "()")
          rules.emplace_back(name,
                             "shard " + std::string(name) + " over " + over + (isMirrored ? " order mirrored;" : ";"));
      }
      int64_t size = product * (isMirrored ? 2 : 1);
      if (size < 2 || random.chance(30))
        size *= 2;
      // Rules for single values may split any dim over any axes.
      if (random.chance(50))
        size = std::lcm(size, everyAxis);
      if (random.chance(2))
        ++size; // does not come out even
      if (name == std::string("V") && size > 1 && random.chance(15)) {
        rules.emplace_back(name, "pad V to " + std::to_string(size) + ";");
        size -= random.below(size - 1);
      }
      dims.push_back({name, size});
      batchProduct = name == std::string("B") ? product : batchProduct;
    }
    return rules;
  }

  /// State in parts, mostly over the axes that split the batch.
  std::string makePartition(llvm::ArrayRef<std::pair<std::string, std::string>> shardRules) {
    std::string over = random.pick(mesh.axes);
    for (auto &[dim, rule] : shardRules)
      if (dim == "B" && isUsed("B") && random.chance(80))
        over = llvm::StringRef(rule).split(" over ").second.split(';').first.str();
    // What is updated in parts of what is kept.
    if (over[0] == '(' && random.chance(30)) {
      std::string first = llvm::StringRef(over).drop_front().split(',').first.str();
      return "partition " + std::string(random.chance(50) ? "parameters" : "gradients") + " over " + first +
             "; partition optimizer over " + over + ";";
    }
    std::string units = random.chance(60) ? " by unit *" : "";
    switch (random.below(4)) {
    case 0:
      return "partition optimizer over " + over + units + ";";
    case 1:
      return "partition gradients over " + over + units + ";";
    default:
      return "partition parameters over " + over + units + " { keep = " + (random.chance(30) ? "true" : "false") +
             "; prefetch = " + std::to_string(units.empty() ? 0 : random.below(4)) + "; }";
    }
  }

  /// How gradients are reduced, over all axes or one of them.
  std::string makeReduction(const std::vector<std::string> &axes) {
    std::string over = random.chance(30) ? random.pick(axes) : "(" + llvm::join(axes, ", ") + ")";
    std::string rule = "reduce gradients over " + over + " { ";
    if (random.chance(80))
      rule += "bucket = " + std::to_string(1 + random.below(400)) + "B; ";
    if (random.chance(40))
      rule += std::string("type = ") + (random.chance(60) ? "bf16" : "f32") + "; ";
    if (random.chance(30))
      rule += "per_microbatch = true; ";
    if (random.chance(60))
      rule += std::string("overlap = ") + (random.chance(70) ? "true" : "false") + "; ";
    return rule + "}";
  }

  /// What backward makes again: all, layers, what some operators make, some values.
  /// `recompute` or `offload`.
  std::string makeLayerRule(const std::string &word) {
    bool isOffload = word == "offload";
    std::string where = !isOffload          ? ""
                        : random.chance(30) ? " to host"
                                            : " to host after " + std::to_string(random.below(4));
    std::vector<std::string> places = {"**"};
    if (hasLayers)
      places.insert(places.end(), {"layers[*]", "layers[*]", "layers[*].**"});
    for (const char *op : operators)
      if (isUsed(getName(op)))
        places.push_back("**." + getName(op) + "()");
    for (const RandomModel::Value &value : model.named)
      places.push_back("**." + value.name);
    if (hasLayers && random.chance(35)) { // some of them
      std::string which = random.chance(50)   ? "{ first = " + std::to_string(1 + random.below(3)) + "; }"
                          : random.chance(50) ? "if i % 2 == 1;"
                                              : "if i < " + std::to_string(1 + random.below(4)) +
                                                    (isOffload ? ";" : " { whole = true; }");
      return "  " + word + " layers[i]" + where + " " + which;
    }
    if (hasLayers && !isOffload && random.chance(20))
      return "  recompute layers[*] { group = " + std::to_string(2 + random.below(3)) +
             (random.chance(70) ? "; whole = true; }" : "; }");
    std::string patterns = random.pick(places);
    while (random.chance(40))
      patterns += ", " + random.pick(places);
    return "  " + word + " " + patterns + where + (!isOffload && random.chance(40) ? " { whole = true; }" : ";");
  }

  /// Keys that go round, mostly over an axis that splits the queries.
  std::string makeRing(const std::vector<std::string> &axes,
                       llvm::ArrayRef<std::pair<std::string, std::string>> shardRules) {
    std::vector<std::string> ofQueries;
    for (auto &[dim, rule] : shardRules)
      for (const std::string &axis : axes)
        if (dim == "S" && hasWord(rule, axis))
          ofQueries.push_back(axis);
    bool isSplit = !ofQueries.empty() && random.chance(90);
    std::string axis = random.pick(isSplit ? ofQueries : axes);
    return "  at **.attend() { ring t over " + axis + ";" + (isSplit ? "" : " shard s over " + axis + ";") + " }";
  }

  std::vector<std::string> makePatternRules() {
    // Patterns that match something, and what of it can be split.
    std::vector<std::pair<std::string, std::vector<std::string>>> places;
    for (const char *op : {"pool", "highest", "exps", random.chance(10) ? "soften" : "pool"})
      if (isUsed(op))
        places.push_back({std::string("**.") + op + "()", {"n"}});
    for (const char *op : {"attend", "behind"})
      if (isUsed(op))
        places.push_back({std::string("**.") + op + "()", {"b", op == std::string("attend") ? "s" : "d"}});
    if (hasLayers)
      places.push_back({"layers[*].h", model.carriedDims});
    for (const RandomModel::Value &param : model.params)
      places.push_back({"param **." + param.name, param.dims});
    for (const RandomModel::Value &value : model.named)
      places.push_back({"**." + value.name, value.dims});
    std::vector<std::string> rules;
    for (unsigned n = random.below(3); n; --n) {
      const auto &[place, names] = random.pick(places);
      rules.push_back("at " + place + ": shard " + random.pick(names) + " over " + mesh.someAxes(random, 2) + ";");
    }
    return rules;
  }

  //===--- schedule and job -----------------------------------------------===//

  void makeSchedule() {
    if (mesh.pipeline.empty())
      return;
    if (mesh.chunks > 1)
      lines.push_back("import std.schedules (interleaved);");
    lines.push_back("schedule all_then_all(p, m, r) { for i in 0..m { forward(i); } for i in 0..m { backward(i); } }");
    lines.push_back(
        "schedule last_first(p, m, r) { for i in 0..m { forward(i); } for i in 0..m { backward(m - 1 - i); } }");
    lines.push_back("schedule in_turn(p, m, r) { let w = min(m, p - r); for i in 0..w { forward(i); } "
                    "for i in 0..m - w { backward(i); forward(w + i); } for i in m - w..m { backward(i); } }");
    lines.push_back("schedule in_pairs(p, m, r) { let w = min(m, 2 * (p - r) - 1); for i in 0..w { forward(i); } "
                    "for i in 0..m - w { overlap(backward(i), forward(w + i)); } for i in m - w..m { backward(i); } }");
  }

  void makeJob() {
    int64_t rounds = mesh.chunks > 1 && mesh.stages > 1 ? mesh.stages : 1;
    int64_t microbatches = rounds * (1 + random.below(rounds > 1 ? 2 : 4)), batch = dims.front().second;
    // `batch` sequences per microbatch, `microbatch` of them on each rank that splits them.
    int64_t each = std::max<int64_t>(1, batch / std::max<int64_t>(1, batchProduct));
    lines.push_back("job j {");
    lines.push_back("  model = M();");
    lines.push_back("  step = train(B = " + std::to_string(each * batchProduct * microbatches) +
                    ", S = " + std::to_string(dims[1].second) + ", microbatch = " + std::to_string(each) +
                    ", optimizer = adamw" + (random.chance(25) ? ", clip = 1.0);" : ");"));
    const std::vector<std::string> precisions = {"fp32", "fp32", "bf16_mixed", "apart"};
    const std::string &precision = random.pick(precisions);
    lines.push_back("  precision = " + precision + ";");
    lines.push_back("  strategy = s();");
    lines.push_back("}");
    if (precision == "apart")
      lines.push_back("precision apart { weight = bf16; activation = bf16; gradient = f32; master = f32; "
                      "accumulate = separate; }");
  }

  // In the order in which they are chosen.
  Random random;
  const std::string interleaved = "interleaved(v = 2)";
  std::string schedule = random.pick(std::vector<std::string>{"all_then_all", "last_first", "in_turn", interleaved});
  bool hasLayers = false;
  const RandomMesh mesh = chooseMesh();
  RandomModel model;
  std::vector<std::string> lines;
  int64_t batchProduct = 1;
  std::vector<std::pair<std::string, int64_t>> dims;
};
} // namespace

std::vector<std::string> stage::makeRandomProgram(uint64_t seed, bool routes) { return Generator(seed, routes).run(); }
