#include "tilewright/check/spaces.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tilewright/base/format.h"
#include "tilewright/ptx/parser.h"

namespace tw::check {
namespace {

ProxyFence of(const std::string& text) {
  const ptx::Module module = ptx::parse(
      tw::format(".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n{}\nret;\n}}\n",
                 text),
      "fence.ptx");
  return proxy_fence(std::get<ptx::Instruction>(module.function("k")->body.front()));
}

// Where the parts begin that a fence by a thread of CTA 1 orders; three CTAs of 10 actors each.
std::set<size_t> parts(const std::string& text) {
  std::set<size_t> out;
  of(text).each(Spaces(30, 3), 1, [&](size_t begin) { out.insert(begin); });
  return out;
}

// "membar, fence": ".proxykind = { .alias, .async, .async.global, .async.shared::{cta, cluster} }".
TEST(ProxyFences, OrderTheStateSpaceThatTheyName) {
  EXPECT_EQ(parts("fence.proxy.async;"), (std::set<size_t>{0, 30, 60, 90}));
  EXPECT_EQ(parts("fence.proxy.async.global;"), (std::set<size_t>{90}));
  EXPECT_EQ(parts("fence.proxy.async.shared::cta;"), (std::set<size_t>{30}));
  EXPECT_EQ(parts("fence.proxy.async.shared::cluster;"), (std::set<size_t>{0, 30, 60}));
  EXPECT_EQ(parts("membar.proxy.async.shared::cta;"), (std::set<size_t>{30}));
  EXPECT_EQ(parts("fence.proxy.alias;"), std::set<size_t>{});
}

TEST(ProxyFences, OfOneDirectionGiveNothingBack) {
  const std::string release = "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
                    acquire = "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;";
  EXPECT_EQ(parts(release), (std::set<size_t>{30}));
  EXPECT_EQ(parts(acquire), (std::set<size_t>{0, 30, 60}));
  EXPECT_FALSE(of(release).back);
  EXPECT_FALSE(of(acquire).back);
  EXPECT_TRUE(of("fence.proxy.async;").back);
}

}  // namespace
}  // namespace tw::check
