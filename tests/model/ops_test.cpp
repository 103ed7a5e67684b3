#include "orthant/model/ops.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

TEST(Ops, HaveTheNamesOfNetworkFiles) {
  EXPECT_STREQ(name_of(Op{Input{}}), "input");
  EXPECT_STREQ(name_of(Op{Conv{}}), "conv");
  EXPECT_STREQ(name_of(Op{ConvTranspose{}}), "conv_transpose");
  EXPECT_STREQ(name_of(Op{Pool{.kind = PoolKind::max}}), "max_pool");
  EXPECT_STREQ(name_of(Op{Pool{.kind = PoolKind::average}}), "average_pool");
  EXPECT_STREQ(name_of(Op{GlobalAveragePool{}}), "global_average_pool");
  EXPECT_STREQ(name_of(Op{BatchNorm{}}), "batch_norm");
  EXPECT_STREQ(name_of(Op{Activation{ActivationKind::leaky_relu}}), "leaky_relu");
  EXPECT_STREQ(name_of(Op{Flatten{}}), "flatten");
  EXPECT_STREQ(name_of(Op{SampleNorm{.kind = SampleNormKind::group}}), "group_norm");
  EXPECT_STREQ(name_of(Op{SampleNorm{.kind = SampleNormKind::instance}}), "instance_norm");
  EXPECT_STREQ(name_of(Op{SampleNorm{.kind = SampleNormKind::layer}}), "layer_norm");
  EXPECT_STREQ(name_of(Op{Activation{ActivationKind::hard_swish}}), "hard_swish");
}

}  // namespace
}  // namespace orthant::model
