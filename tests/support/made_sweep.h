// A made-up sweep folder with the shape of a real one, for tests and for looking at the page.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace xsa::testing {

struct MadeSetting {
  std::string value;      // of the axis
  double standard = 2.2;  // final validation loss; each seed adds 0.01 to the one before
  double margin = 0.05;   // by which XSA's is lower; odd seeds have 0.002 more, even ones less
};

struct MadeSweep {
  std::string name = "rates", figure = "fig4";
  std::string axis = "lr", label = "learning rate";
  std::vector<MadeSetting> settings = {{"1e-3"}, {"2e-3"}};
  std::vector<std::int64_t> seeds = {1, 2, 3};
};

/// A run folder of two layers and two heads.
void write_made_run(const std::filesystem::path& folder, const std::string& attention,
                    std::int64_t seed, double loss);

/// Writes it into `folder`, which must be new or empty.
void write_sweep(const std::filesystem::path& folder, const MadeSweep& made);

}  // namespace xsa::testing
