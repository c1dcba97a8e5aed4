#include "xsa/checkpoint/checkpoint.h"
#include "xsa/train/tensor_data.h"
#include "xsa/train/trainer.h"

namespace xsa::train {

model::Gpt load_model(const std::filesystem::path& checkpoint) {
  const checkpoint::Reader reader(checkpoint);
  model::Gpt model(run_config_from_json(reader.recipe()).model, /*seed=*/0);
  for (const model::NamedTensor& parameter : model.parameters())
    copy_to(reader.model().at(parameter.name), parameter.tensor);
  return model;
}

}  // namespace xsa::train
