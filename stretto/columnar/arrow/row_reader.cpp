#include "stretto/columnar/arrow/row_reader.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <arrow/ipc/reader.h>
#include <arrow/type.h>
#include <parquet/arrow/reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>

#include "stretto/columnar/arrow/json_value.h"

namespace stretto::columnar {
namespace {

constexpr size_t part_bytes = size_t{1} << 20;
constexpr int64_t rows_of_batch = 1024;  // of Parquet: a batch is in memory as a whole

}  // namespace

RowReader::RowReader() = default;
RowReader::~RowReader() = default;

arrow::Status RowReader::open(const std::string& path, const char* column) {
  ARROW_ASSIGN_OR_RAISE(file_, arrow::io::ReadableFile::Open(path));
  ARROW_ASSIGN_OR_RAISE(bytes_, file_->GetSize());
  char start[6] = {};
  ARROW_RETURN_NOT_OK(file_->ReadAt(0, sizeof start, start).status());
  const std::string_view begin(start, sizeof start);
  if (begin.starts_with("PAR1")) return open_parquet(column);
  ARROW_RETURN_NOT_OK(begin == "ARROW1" ? open_file() : open_stream());
  if (column != nullptr) column_ = column;
  return arrow::Status::OK();
}

arrow::Status RowReader::open_parquet(const char* column) {
  parquet::arrow::FileReaderBuilder builder;
  ARROW_RETURN_NOT_OK(builder.Open(file_));
  parquet::ArrowReaderProperties properties;
  properties.set_batch_size(rows_of_batch);
  properties.set_pre_buffer(false);  // would hold the columns of a row group in memory
  builder.properties(properties);
  ARROW_ASSIGN_OR_RAISE(parquet_, builder.Build());
  const auto metadata = parquet_->parquet_reader()->metadata();
  rows_ = metadata->num_rows();
  std::vector<int> groups(static_cast<size_t>(metadata->num_row_groups())), all, leaves;
  std::iota(groups.begin(), groups.end(), 0);
  for (int leaf = 0; leaf < metadata->num_columns(); ++leaf) {
    all.push_back(leaf);
    if (column != nullptr && metadata->schema()->GetColumnRoot(leaf)->name() == column)
      leaves.push_back(leaf);
  }
  std::shared_ptr<arrow::RecordBatchReader> batches;
  ARROW_ASSIGN_OR_RAISE(batches, parquet_->GetRecordBatchReader(groups, leaves.empty() ? all : leaves));
  next_batch_ = [batches] { return batches->Next(); };
  return arrow::Status::OK();
}

arrow::Status RowReader::open_file() {
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> batches;
  ARROW_ASSIGN_OR_RAISE(batches, arrow::ipc::RecordBatchFileReader::Open(file_));
  next_batch_ = [batches, next = 0]() mutable -> arrow::Result<std::shared_ptr<arrow::RecordBatch>> {
    if (next == batches->num_record_batches()) return std::shared_ptr<arrow::RecordBatch>();
    return batches->ReadRecordBatch(next++);
  };
  return arrow::Status::OK();
}

arrow::Status RowReader::open_stream() {
  ARROW_RETURN_NOT_OK(file_->Seek(0));  // is needed after ReadAt
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> batches;
  ARROW_ASSIGN_OR_RAISE(batches, arrow::ipc::RecordBatchStreamReader::Open(file_));
  next_batch_ = [batches] { return batches->Next(); };
  return arrow::Status::OK();
}

arrow::Status RowReader::read(std::string& lines) {
  lines.clear();
  while (lines.size() < part_bytes) {
    if (batch_ == nullptr || row_ == batch_->num_rows()) {
      ARROW_ASSIGN_OR_RAISE(batch_, next_batch_());
      if (batch_ == nullptr) return arrow::Status::OK();
      row_ = 0;
      const int column = column_.empty() ? -1 : batch_->schema()->GetFieldIndex(column_);
      if (column >= 0) {
        ARROW_ASSIGN_OR_RAISE(batch_, batch_->SelectColumns({column}));
      }
      continue;
    }
    lines += '{';
    for (int column = 0; column < batch_->num_columns(); ++column) {
      if (column > 0) lines += ',';
      append_json(batch_->column_name(column), lines);
      lines += ':';
      append_json(*batch_->column(column), row_, lines);
    }
    lines += "}\n";
    ++row_;
    ++rows_read_;
  }
  return arrow::Status::OK();
}

double RowReader::progress() const {
  if (parquet_ != nullptr)
    return static_cast<double>(rows_read_) / static_cast<double>(std::max<int64_t>(1, rows_));
  const auto position = file_->Tell();
  return position.ok() ? static_cast<double>(*position) / static_cast<double>(std::max<int64_t>(1, bytes_))
                       : 0;
}

}  // namespace stretto::columnar
