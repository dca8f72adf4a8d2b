//===- OrderGathers.h - parameters in the order of the next forward -------===//
#ifndef STAGE_LIB_TRANSFORMS_ORDERGATHERS_H
#define STAGE_LIB_TRANSFORMS_ORDERGATHERS_H

namespace stage {
class Graph;

/// Where updated parameters are gathered on a stream of their own, the step goes in the order of forward. Streams must
/// be decided.
void orderGathers(Graph &graph);

} // namespace stage

#endif // STAGE_LIB_TRANSFORMS_ORDERGATHERS_H
