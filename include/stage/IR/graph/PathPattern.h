//===- PathPattern.h - patterns over the paths of values -------*- C++ -*-===//
//
// The text after `at` in a strategy:
//
//   layers[*].{x, h}     values x and h of every iteration of `layers`
//   **.attention()       every result of an op `attention`, at any depth
//   **.{linear, rope}()  the same for several
//   param **             every parameter
//   result **.x          values that are neither parameters nor inputs
//   attn.rope.1          a value without a name, by what messages and reports call it: its op and, where one
//                        operator stands for several, which. `*` and `**` never mean it.
//   embed                one value
//   **.attention.grad()  the gradients of ops `attention`; **.attention() is those, too
//   layers[*].x.grad     the gradient of a value
//   layers[*].{x, h?}    x, and h of models that have it; without the `?` a name in braces that matches nothing is
//                        warned of
//   **.attn.qr?          a pattern that may match nothing as a whole
//
// A segment may use `*` for any characters; `**` stands for any number of segments.
// `[*]` after a segment says that it is a repeat and may be left out. The number of a member of a group
// (GroupIterations.h) is no part of a path for patterns: `layers[*].x` means `layers.1.x`, too.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IR_GRAPH_PATHPATTERN_H
#define STAGE_IR_GRAPH_PATHPATTERN_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"
#include <optional>
#include <string>
#include <vector>

namespace stage {

class Value;
using PathNames = llvm::SmallVector<llvm::StringRef, 6>;
/// The names in a path, without numbers of members of groups.
PathNames splitPath(llvm::StringRef path);

class PathPattern {
public:
  /// Nothing if the text is no pattern.
  static std::optional<PathPattern> parse(llvm::StringRef text);
  /// As it was written.
  const std::string &getText() const { return text; }

  /// True for patterns that end in `?`: that nothing matches is meant.
  bool mayLack() const { return lackable; }
  /// True for patterns that end in `()`.
  bool matchesOps() const { return ops; }
  /// True for patterns behind `result`.
  bool isOfResults() const { return results; }
  /// `param P`
  bool isOfParameters() const { return params; }
  /// A path alone: neither ops, nor parameters or results only.
  bool isPath() const { return !ops && !params && !results; }
  /// True for patterns that end in `.grad` or `.grad()`: those speak of gradients only.
  bool namesGradient() const;
  bool matches(const Value &value) const;
  /// A module instance or a value, by its whole path.
  bool matchesPath(llvm::StringRef path) const;
  /// An op `name` in `scope`. `rope` and `rope.1` are one operator with operands of different shapes: a pattern may
  /// mean both or one.
  bool matchesOp(llvm::StringRef scope, llvm::StringRef name) const;
  /// How much it says: of two patterns that match one value or op the more specific wins. Literal segments
  /// count most, then segments with `*` (in one of the alternatives), then `**`.
  unsigned getSpecificity() const;
  unsigned getNumSegments() const { return segments.size(); }
  /// Whether a segment is `**`, and stands for any number of names.
  bool isAnyDepth(unsigned segment) const { return segments[segment].alternatives.front() == "**"; }
  /// Whether a segment may be other names than those that are written out.
  bool hasStar(unsigned segment) const { return !segments[segment].globs.empty(); }
  llvm::ArrayRef<std::string> getAlternatives(unsigned segment) const { return segments[segment].alternatives; }
  /// The names in braces, without a `?`, that match something: those of each segment. `note...` adds a path that the
  /// pattern matches, as the function `matches...` does; of what it does not match nothing is added.
  using SeenNames = llvm::SmallVector<llvm::StringSet<>, 4>;
  void note(const Value &value, SeenNames &seen) const;
  void notePath(llvm::StringRef path, SeenNames &seen) const;
  void noteOp(llvm::StringRef scope, llvm::StringRef name, SeenNames &seen) const;
  /// Whether a name in braces has no `?`, so that something must match it.
  bool namesAlternatives() const;
  /// Those of them that are not among `seen`, in order, each with the pattern that has no other name at its place.
  std::vector<std::pair<std::string, PathPattern>> listUnseen(const SeenNames &seen) const;
  /// How far a path (or an op's scope and name) is from what is meant: letters to change, and a little for each level
  /// left out. Nothing if it is more than half of the pattern's letters.
  std::optional<unsigned> getDistance(llvm::StringRef path) const;

private:
  /// What stands between two dots; `**` is the single alternative "**".
  struct Segment {
    llvm::SmallVector<std::string, 2> alternatives;
    llvm::StringSet<> names;                 ///< The alternatives without a star: braces may hold thousands.
    llvm::SmallVector<std::string, 1> globs; ///< Those with one.
    llvm::StringSet<> lackable;              ///< Those with a `?`.
    bool matches(llvm::StringRef name) const;
  };
  bool matchSegments(llvm::ArrayRef<llvm::StringRef> path) const;
  void noteSegments(llvm::ArrayRef<llvm::StringRef> path, SeenNames &seen) const;
  std::string text;
  llvm::SmallVector<Segment, 4> segments;
  bool ops = false;
  bool lackable = false;
  bool params = false, results = false; ///< What stands before the pattern.
};

} // namespace stage

#endif // STAGE_IR_GRAPH_PATHPATTERN_H
