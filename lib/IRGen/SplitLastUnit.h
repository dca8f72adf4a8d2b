//===- SplitLastUnit.h - a case for the layer that is kept -----*- C++ -*-===//
#ifndef STAGE_LIB_IRGEN_SPLITLASTUNIT_H
#define STAGE_LIB_IRGEN_SPLITLASTUNIT_H

namespace stage {
class Graph;

/// Makes the last layer a case of its own where the strategy keeps what it gathers (`keep = last`). All rules must be
/// there.
void splitLastUnit(Graph &graph);

} // namespace stage

#endif // STAGE_LIB_IRGEN_SPLITLASTUNIT_H
