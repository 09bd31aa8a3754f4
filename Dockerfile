# kdx for CPUs; docs/do/run-in-a-container.md shows its use.
FROM python:3.11-slim
WORKDIR /src
COPY constraints.txt .
# In a layer of its own, which a change of kdx does not rebuild; from PyTorch's index of builds without GPU libraries.
RUN pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu -c constraints.txt torch
COPY . .
RUN pip install --no-cache-dir -c constraints.txt . \
 && useradd --uid 1000 kdx && install -d -o kdx -g kdx /data /runs
USER 1000
ENV KDX_DATA=/data
WORKDIR /runs
VOLUME ["/data", "/runs"]
ENTRYPOINT ["kdx"]
CMD ["--help"]
