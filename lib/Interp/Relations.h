//===- Relations.h - what of a job's sizes a proof keeps -------*- C++ -*-===//
//
// Problem: a proof runs a job at tiny sizes, and a size that is too small hides a fault. With 128 experts of which a
// token goes to 8, a wrong gradient of the router shows; with 2 experts of which it goes to 2 the shares of a token
// always sum to 1, and nothing shows.
//
// So sizes are made small under *relations*: conditions that hold of the sizes of the job and that the program depends
// on. They are found in the program, and no model or operator is known by its name:
//
//   in the program                     in the job        in the proof
//   ---------------------------------  ----------------  -----------------------------------------------------
//   `require K <= X`                   8 <= 128          K < X: a requirement that holds with room keeps room
//   `if S > W { ... }`                 S > W             S > W: the same branch is taken
//   `where(s - t < W, ...)`            W < S             S > W: each outcome that occurs still occurs
//   `ceildiv(B*S*K, X)`, `S % Q`       a remainder       a remainder
//   `min(K, nodes)`                    K < nodes         K < nodes: the same side is the smaller one
//   experts X over ep                  128/64 = 2        X/ep > 1: a rank still has several positions
//   flat storage over dp               padded            padded
//
// Limits: a comparison of computed numbers has no relation, because only the numbers decide it. Indices of one
// comparison vary independently.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_INTERP_RELATIONS_H
#define STAGE_LIB_INTERP_RELATIONS_H

#include "stage/IR/graph/Graph.h"
#include <functional>

namespace stage::interp {

struct Relation {
  enum class Kind {
    Positive,    ///< `left` > 0
    Indivisible, ///< `left` is no multiple of `right`
  };
  Kind kind;
  Size left, right;
  std::string text; ///< What holds: "K < X", "both outcomes of 's - t < 4' in 'attention'".
  /// What a person is told about if it is lost: names and sizes.
  std::vector<std::pair<std::string, Size>> measures;
  bool isOfPieces = false; ///< About what one rank has of a dim.
  /// Beside `left` > 0, what the sizes of a binding must satisfy; null: nothing.
  std::function<bool(const SizeBinding &)> test = nullptr;

  bool holds(const SizeBinding &binding) const;
  /// "K < X: K 2 of 8, X 2 of 128".
  std::string describe(const SizeBinding &binding, const SizeBinding &job) const;
};

/// The relations that hold of the job's sizes, in order: of requirements, of decisions, of formulas, of sizes, of
/// pieces. `job` binds the symbols of the graph and the axes of its mesh as the job has them. To be asked after the
/// passes, when all shardings are known.
std::vector<Relation> findRelations(Graph &graph, const SizeBinding &job);

} // namespace stage::interp

#endif // STAGE_LIB_INTERP_RELATIONS_H
