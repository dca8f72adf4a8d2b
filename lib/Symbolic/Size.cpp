//===- Size.cpp - exact symbolic sizes ------------------------------------===//
#include "stage/Symbolic/Size.h"
