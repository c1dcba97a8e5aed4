#include "xsa/data/arrow_file.h"

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <parquet/arrow/reader.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "xsa/data/byte_stream.h"
#include "xsa/data/file_head.h"

namespace xsa::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIpcFileMagic = "ARROW1";
/// Of a stream: a message of no length (since Arrow 0.15).
constexpr std::array<char, 8> kEndMark = {-1, -1, -1, -1, 0, 0, 0, 0};

/// A ByteStream as Arrow reads it.
class ArrowStream final : public arrow::io::InputStream {
 public:
  explicit ArrowStream(const fs::path& path) : stream_(path) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override { return position_; }

  arrow::Result<std::int64_t> Read(std::int64_t size, void* out) override {
    char* bytes = static_cast<char*>(out);
    const std::size_t got = stream_.read({bytes, static_cast<std::size_t>(size)});
    position_ += static_cast<std::int64_t>(got);
    for (std::size_t i = got - std::min(got, tail_.size()); i < got; ++i) {
      std::rotate(tail_.begin(), tail_.begin() + 1, tail_.end());
      tail_.back() = bytes[i];
    }
    return static_cast<std::int64_t>(got);
  }

  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(size));
    ARROW_ASSIGN_OR_RAISE(const std::int64_t got, Read(size, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }

  std::int64_t raw_bytes() const { return stream_.raw_bytes(); }

  /// The last bytes given are the end-of-stream mark. Arrow itself takes a stream that was cut
  /// between two batches for a whole one.
  bool saw_end() const { return tail_ == kEndMark; }

 private:
  ByteStream stream_;
  std::int64_t position_ = 0;
  bool closed_ = false;
  std::array<char, 8> tail_{};
};

arrow::ipc::IpcReadOptions ipc_options() {
  arrow::ipc::IpcReadOptions options;
  options.use_threads = false;
  return options;
}

class StreamBatches final : public arrow::RecordBatchReader {
 public:
  explicit StreamBatches(const fs::path& path)
      : name_(path.string()), stream_(std::make_shared<ArrowStream>(path)) {
    reader_ = unwrap(arrow::ipc::RecordBatchStreamReader::Open(stream_, ipc_options()), name_);
  }
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    ARROW_RETURN_NOT_OK(reader_->ReadNext(batch));
    if (*batch == nullptr && !stream_->saw_end())
      return arrow::Status::IOError("the stream has no end mark: it is truncated");
    return arrow::Status::OK();
  }
  std::int64_t raw_bytes() const { return stream_->raw_bytes(); }

 private:
  std::string name_;
  std::shared_ptr<ArrowStream> stream_;
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> reader_;
};

class FileBatches final : public arrow::RecordBatchReader {
 public:
  explicit FileBatches(const fs::path& path) : bytes_(static_cast<double>(fs::file_size(path))) {
    const auto file = unwrap(arrow::io::ReadableFile::Open(path.string()), path.string());
    reader_ = unwrap(arrow::ipc::RecordBatchFileReader::Open(file, ipc_options()), path.string());
  }
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    batch->reset();
    if (next_ < reader_->num_record_batches()) {
      ARROW_ASSIGN_OR_RAISE(*batch, reader_->ReadRecordBatch(next_++));
    }
    return arrow::Status::OK();
  }
  std::int64_t raw_bytes() const {
    return static_cast<std::int64_t>(bytes_ * next_ / std::max(1, reader_->num_record_batches()));
  }

 private:
  double bytes_;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> reader_;
  int next_ = 0;
};

/// Holds the file that the batches come from.
class ParquetBatches final : public arrow::RecordBatchReader {
 public:
  ParquetBatches(const fs::path& path, std::int64_t rows) {
    refuse_lfs_pointer(path);
    parquet::ReaderProperties properties;
    properties.enable_buffered_stream();
    properties.set_page_checksum_verification(true);
    parquet::ArrowReaderProperties batches(/*use_threads=*/false);
    batches.set_pre_buffer(false);
    batches.set_batch_size(rows);
    parquet::arrow::FileReaderBuilder builder;
    const arrow::Status status = builder.OpenFile(path.string(), /*memory_map=*/false, properties);
    if (!status.ok()) fail_to_read(path.string(), status.message());
    file_ = unwrap(builder.properties(batches)->Build(), path.string());
    reader_ = unwrap(file_->GetRecordBatchReader(), path.string());
  }
  std::shared_ptr<arrow::Schema> schema() const override { return reader_->schema(); }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* batch) override {
    return reader_->ReadNext(batch);
  }

 private:
  std::unique_ptr<parquet::arrow::FileReader> file_;
  std::unique_ptr<arrow::RecordBatchReader> reader_;
};

bool is_ipc_file(const fs::path& path) {
  if (path == kStandardInput) return false;
  std::string head(kIpcFileMagic.size(), '\0');
  std::ifstream(path, std::ios::binary)
      .read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == kIpcFileMagic;
}

}  // namespace

void fail_to_read(const std::string& name, std::string_view reason) {
  throw Error(cat(name, ": cannot read: ", reason, "; fetch or write the file again"));
}

Batches open_batches(const fs::path& path, FileKind kind, std::int64_t rows) {
  const auto with_position = [](auto reader) -> Batches {
    return {reader, [reader] { return reader->raw_bytes(); }};
  };
  if (kind == FileKind::kParquet)
    return {std::make_shared<ParquetBatches>(path, rows), [] { return std::int64_t{0}; }};
  if (is_ipc_file(path)) return with_position(std::make_shared<FileBatches>(path));
  return with_position(std::make_shared<StreamBatches>(path));
}

}  // namespace xsa::data
