//===- Apportion.cpp - whole numbers in proportion to weights -------------===//
#include "stage/Symbolic/Size.h"
#include <numeric>

using namespace stage;

std::vector<int64_t> stage::apportion(llvm::ArrayRef<int64_t> weights, int64_t total) {
  // At most 2^20 weights of 63 bits: products with a total of 63 bits have no more than 126, sums no more than 83.
  __int128 sum = 0;
  for (int64_t weight : weights)
    sum += weight;
  assert(sum > 0 && total >= 0 && "nothing to deal out by");
  std::vector<int64_t> shares;
  std::vector<__int128> remainders;
  int64_t left = total;
  for (int64_t weight : weights) {
    __int128 product = __int128(weight) * total;
    shares.push_back(int64_t(product / sum));
    remainders.push_back(product % sum);
    left -= shares.back();
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (int64_t i = 0; i < left; ++i) // fewer than there are weights
    ++shares[order[i]];
  return shares;
}
