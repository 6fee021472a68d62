// Puts one fault into a kernel of the ladder, each in turn: the checker must notice, or the numbers be wrong.
// What may be changed without harm is listed with the proof. With TW_MUTANTS=1 in the environment it prints
// each mutant and its report.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/faults/equivalent.h"
#include "tests/faults/gemm.h"
#include "tests/faults/mutate.h"
#include "tilewright/check/check.h"

namespace tw {
namespace {

using testing::Family;

struct Case : faults::Case {
  Family family;
};
void PrintTo(const Case& c, std::ostream* out) {
  faults::PrintTo(c, out);
  *out << ", " << testing::name(c.family);
}

enum class Outcome {
  found,     // the checker reports it
  wrong,     // it does not, and the result is wrong
  remarked,  // the result is right, and the checker names what the ISA does not promise about it
  right,
};

// A product of small integers, whose result is exact in every order of summation.
struct Product : faults::Gemm {
  using Gemm::Gemm;

  // The report, and whether some schedule's result differs from `expected`.
  std::pair<check::CheckReport, bool> check(const Compiled& k, const std::vector<std::byte>* expected) {
    check::CheckOptions options;
    options.schedules = {"late", "eager", "random:1"};
    options.stop_at_first = true;
    bool differs = false;
    const auto run = [&](sim::RunOptions sim) {
      sim.instruction_limit = 2'000'000;
      launch(k, sim);
      differs |= expected && d.download() != *expected;
    };
    check::CheckReport report = check::check(run, options);
    return {std::move(report), differs};
  }

  Outcome outcome(const testing::Mutation& m, const std::vector<std::byte>& expected) {
    const auto module = std::make_shared<const ptx::Module>(testing::mutated(*kernel.module, m));
    Compiled mutant = kernel;
    mutant.module = module;
    mutant.text = std::make_shared<const std::string>(ptx::print(*module));
    try {
      const auto [report, differs] = check(mutant, &expected);
      if (std::getenv("TW_MUTANTS"))
        std::printf("  %s: %s\n", m.what.c_str(),
                    report.faults.empty() && report.remarks.empty() ? "-" : check::to_text(report).c_str());
      return !report.faults.empty()    ? Outcome::found
             : differs                 ? Outcome::wrong
             : !report.remarks.empty() ? Outcome::remarked
                                       : Outcome::right;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::user) throw;
      return Outcome::found;  // refused before it ran
    }
  }
};

// Several tiles for each worker, more chunks of K than stages. What one shape does not show, where a ring
// happens to stand at the end, another does.
std::vector<kernels::GemmShape> shapes(const Case& c) {
  if (c.device == "sim:b200") return {{1100, 512, 320}, {1100, 512, 384}, {1100, 256, 320}, {1100, 256, 448}};
  return {{384, 512, 320}, {384, 512, 384}, {384, 256, 320}};
}

class Mutation : public ::testing::TestWithParam<Case> {};

// One kernel and all its mutants of a family.
struct Suite {
  Product product;
  std::vector<testing::Mutation> mutations;
  std::vector<std::byte> expected;

  const ptx::Function& entry() const { return *product.kernel.module->entries()[0]; }
};

Suite suite(const Case& c, const kernels::GemmShape& shape) {
  Suite s{Product(c, shape), {}, {}};
  s.mutations = testing::mutations(s.entry(), c.family);
  const check::CheckReport whole = s.product.check(s.product.kernel, nullptr).first;
  EXPECT_EQ(whole.verdict, check::Verdict::clean) << check::to_text(whole);
  EXPECT_TRUE(whole.remarks.empty()) << check::to_text(whole);
  s.expected = s.product.d.download();
  return s;
}

TEST_P(Mutation, NoneIsMissed) {
  const Case& c = GetParam();
  const std::vector<kernels::GemmShape> all = shapes(c);
  Suite first = suite(c, all[0]);
  const ptx::Function& entry = first.entry();
  std::vector<Outcome> outcomes;
  for (const testing::Mutation& m : first.mutations)
    outcomes.push_back(first.product.outcome(m, first.expected));
  // Those that nothing showed and nothing proves go on.
  std::vector<std::string> proofs;
  for (const testing::Mutation& m : first.mutations)
    proofs.push_back(testing::equivalent(c.kernel, entry, m));
  const auto open = [&](size_t i) { return outcomes[i] == Outcome::right && proofs[i].empty(); };
  for (size_t n = 1; n < all.size(); ++n) {
    std::vector<size_t> rest;
    for (size_t i = 0; i < outcomes.size(); ++i)
      if (open(i)) rest.push_back(i);
    if (rest.empty()) break;
    Suite s = suite(c, all[n]);
    ASSERT_EQ(s.mutations.size(), outcomes.size());  // the same kernel, with other numbers in it
    for (const size_t i : rest) outcomes[i] = s.product.outcome(s.mutations[i], s.expected);
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const testing::Mutation& m = first.mutations[i];
    const std::string place = m.what + " at " + to_string(std::get<ptx::Instruction>(entry.body[m.at]).loc);
    EXPECT_FALSE(open(i)) << place << ": not noticed";
    EXPECT_TRUE(outcomes[i] != Outcome::wrong || testing::consistent(entry, m))
        << place << ": only a wrong result";
  }
  const auto number = [&](Outcome o) { return std::count(outcomes.begin(), outcomes.end(), o); };
  std::printf(
      "%s on %s, %s: %td of %zu reported, %td more by a wrong result, %td by a remark, %td equivalent\n",
      c.kernel.c_str(), c.device.c_str(), testing::name(c.family), number(Outcome::found), outcomes.size(),
      number(Outcome::wrong), number(Outcome::remarked), number(Outcome::right));
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const faults::Case& c : faults::ladder_cases())
    for (const Family f : testing::kFamilies) out.push_back({c, f});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ladder, Mutation, ::testing::ValuesIn(cases()), [](const auto& tested) {
  return faults::test_name(tested.param) + "_" + testing::name(tested.param.family);
});

}  // namespace
}  // namespace tw
